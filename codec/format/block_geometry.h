// How a compressed chunk is divided into blocks, and a block into streams.
//
// Units: bytes. Thread safety: pure functions on a header that parse_chunk_header() accepted.
#pragma once

#include <cstdint>

#include "codec/format/chunk_header.h"

namespace cframefs::codec {

struct BlockGeometry {
  std::uint32_t blocksize = 0;  // uncompressed bytes of every block but the last; 0 for variable-length blocks
  std::uint32_t count = 0;      // number of blocks, and of block starts
};

/// Returns how the chunk is divided. REQUIRES: neither memcpyed nor special, for their blocksize has no meaning.
BlockGeometry block_geometry(const ChunkHeader& header);

/// Returns the number of streams of block `block` (chunk.md sections 4.1 and 4.2). REQUIRES: as block_geometry().
std::uint32_t stream_count(const ChunkHeader& header, const BlockGeometry& geometry, std::uint32_t block);

}  // namespace cframefs::codec
