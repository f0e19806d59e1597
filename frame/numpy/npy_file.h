// The header of a .npy file, read: what NumPy writes, versions 1 to 3.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for types that are no plain
// bytes.
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
  std::uint64_t data_at = 0;  // where the items begin
};

/// How long the header may be that is read.
inline constexpr std::size_t kMaxNpyHeader = std::size_t{1} << 20;

bool has_npy_magic(ByteView bytes);

/// `bytes`: from the first of the file, at least the whole header or kMaxNpyHeader.
Result<NpyFile> parse_npy_file(ByteView bytes);

/// The bytes of all items; nullopt if there are more than any file has.
std::optional<std::uint64_t> array_bytes(const std::vector<std::int64_t>& shape, std::uint64_t itemsize);

}  // namespace cframefs::frame
