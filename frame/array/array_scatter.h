// Copies C-order bytes of an n-d array to their offsets in the uncompressed chunks, in runs as wide as the innermost
// dimensions allow. The reverse is the gather of reads.
//
// Thread safety: functions; calls for different chunks may run concurrently. Units: bytes. Errors: invalid for a range
// outside the array.
#pragma once

#include <cstdint>

#include "frame/array/array_geometry.h"

namespace cframefs::frame {

/// Copies the C-order bytes [at, at + from.size()) that belong to `chunk` into `plain`, the uncompressed chunk. Returns
/// the number of bytes copied. REQUIRES: plain.size() == array.chunk_bytes().
Result<std::uint64_t> scatter(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at, ByteView from,
                              ByteSpan plain);
/// Does the same with `length` zeros.
Result<std::uint64_t> scatter_zeros(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                    std::uint64_t length, ByteSpan plain);
/// Returns how many of the C-order bytes [at, at + length) belong to `chunk`.
Result<std::uint64_t> bytes_in_chunk(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                     std::uint64_t length);

}  // namespace cframefs::frame
