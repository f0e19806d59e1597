// Putting C-order bytes of an n-d array where they belong in the plain bytes of its chunks: gathering, the other way
// round, in runs as wide as the innermost dimensions allow.
//
// Thread safety: functions; calls for different chunks may run at once. Units: bytes. Errors: invalid, for a range that
// is not of the array.
#pragma once

#include <cstdint>

#include "frame/array/array_geometry.h"

namespace cframefs::frame {

/// Copies those of the C-order bytes [at, at + from.size()) that belong in `chunk` to its plain bytes. Returns how many
/// these were. REQUIRES: plain.size() == array.chunk_bytes().
Result<std::uint64_t> scatter(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at, ByteView from,
                              ByteSpan plain);
/// The same with `length` zeros.
Result<std::uint64_t> scatter_zeros(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                    std::uint64_t length, ByteSpan plain);
/// How many of `length` bytes at `at` belong in `chunk`.
Result<std::uint64_t> bytes_in_chunk(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                     std::uint64_t length);

}  // namespace cframefs::frame
