// How a compressed chunk is cut into blocks, and blocks into streams.
//
// Units: bytes. Thread safety: pure functions on a header that parse_chunk_header() accepted.
#pragma once

#include <cstdint>

#include "codec/format/chunk_header.h"

namespace cframefs::codec {

struct BlockGeometry {
  std::uint32_t blocksize = 0;  // plain bytes of every block but the last; 0 for variable-length blocks
  std::uint32_t count = 0;      // blocks, which is also the number of block starts
};

/// Not for memcpyed and special chunks, whose blocksize means nothing.
BlockGeometry block_geometry(const ChunkHeader& header);

/// Streams that block number `block` of such a chunk holds (chunk.md section 4.1 and 4.2).
std::uint32_t stream_count(const ChunkHeader& header, const BlockGeometry& geometry, std::uint32_t block);

}  // namespace cframefs::codec
