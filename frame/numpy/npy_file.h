// Parses the header of a .npy file, as NumPy writes it in versions 1 to 3.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for types that are not plain
// bytes, such as Python objects.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/numpy/dtype.h"

namespace cframefs::frame {

using codec::ByteView;
using codec::Result;

struct NpyFile {
  ItemType type;
  std::vector<std::int64_t> shape;
  bool fortran_order = false;
  std::uint64_t data_at = 0;  // offset of the items
};

/// Greatest length of a header.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{1} << 20;

bool has_npy_magic(ByteView bytes);

/// Parses a header. `bytes`: the beginning of the file, at least the whole header or kMaxNpyHeader bytes.
Result<NpyFile> parse_npy_file(ByteView bytes);

/// Returns the length of all items in bytes; nullopt if it exceeds 2^63 - 1.
std::optional<std::uint64_t> array_bytes(const std::vector<std::int64_t>& shape, std::uint64_t itemsize);

}  // namespace cframefs::frame
