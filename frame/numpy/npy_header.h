// What stands in front of the items in a .npy file, byte for byte as NumPy 1.24 writes it.
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

/// Magic, version, length and the header itself, padded. Version 1 where it fits, 2 where it is too long, 3 where a
/// name is beyond Latin-1. `fortran_order`: the first dimension runs fastest.
std::vector<std::uint8_t> npy_header(const ItemType& type, std::span<const std::int64_t> shape,
                                     bool fortran_order = false);

}  // namespace cframefs::frame
