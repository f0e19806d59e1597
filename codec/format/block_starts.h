// Where the blocks of a compressed chunk are stored, and the lengths of variable-length blocks.
//
// Format: chunk.md sections 2 and 6. Units: bytes from the first byte of the chunk header. Thread safety: plain values.
// Errors: corruption. One bad start makes the whole chunk corrupt, because the end of each block derives from all
// starts.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/block_geometry.h"

namespace cframefs::codec {

struct StoredBlock {
  std::uint32_t begin = 0;
  std::uint32_t end = 0;  // the next higher start, or the end of the chunk
};

/// Checks that the block starts in `starts`, those of block `first` and the following ones, lie in the chunk's data. A
/// reader that reads the starts in parts stops at the first bad one before it allocates memory for the rest.
Result<void> check_block_starts(ByteView starts, std::uint32_t first, const ChunkHeader& header,
                                std::uint64_t blocks_begin);

/// Returns the stored range of each block. `chunk`: at least header and block starts. `blocks_begin`: the least offset
/// of a block, after starts and dictionary. REQUIRES: the starts fit into the chunk, as parse_chunk_header() checks.
Result<std::vector<StoredBlock>> read_block_starts(ByteView chunk, const ChunkHeader& header, std::uint32_t count,
                                                   std::uint64_t blocks_begin);

/// Returns the uncompressed offset of each variable-length block, followed by nbytes. `lengths`: the length field at
/// the start of each stored block.
Result<std::vector<std::uint32_t>> read_vl_offsets(std::span<const std::int32_t> lengths, const ChunkHeader& header,
                                                   const std::vector<StoredBlock>& blocks);

}  // namespace cframefs::codec
