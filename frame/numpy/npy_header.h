// Writes the header of a .npy file, byte for byte as NumPy 1.24 does.
//
// Thread safety: functions only.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "frame/numpy/dtype.h"

namespace cframefs::frame {

inline constexpr std::array<std::uint8_t, 6> kNpyMagic = {0x93, 'N', 'U', 'M', 'P', 'Y'};

/// Returns magic, version, length and the padded text. Version 1 if the text fits, 2 if it is too long, 3 if a name has
/// characters beyond Latin-1. `fortran_order`: the first dimension varies fastest.
std::vector<std::uint8_t> npy_header(const ItemType& type, std::span<const std::int64_t> shape,
                                     bool fortran_order = false);

}  // namespace cframefs::frame
