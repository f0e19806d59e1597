// Where the blocks of a compressed chunk are stored, and for blocks of variable length also how long they are.
//
// Format: chunk.md sections 2 and 6. Units: bytes from the first byte of the chunk header. Thread safety: plain values.
// Errors: corruption. One bad start condemns the chunk: the ends of the other blocks derive from all starts.
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

/// Whether some of the block starts lead into the chunk's data: `starts` are those of block number `first` and of those
/// behind it. So that a reader who has them a piece at a time takes no memory for starts that are none.
Result<void> check_block_starts(ByteView starts, std::uint32_t first, const ChunkHeader& header,
                                std::uint64_t blocks_begin);

/// `chunk`: at least header and block starts. `blocks_begin`: where the first block may start, behind starts and
/// dictionary. REQUIRES: the starts fit, as parse_chunk_header() made sure.
Result<std::vector<StoredBlock>> read_block_starts(ByteView chunk, const ChunkHeader& header, std::uint32_t count,
                                                   std::uint64_t blocks_begin);

/// Plain offsets at which the blocks of variable length begin, and behind them nbytes. `lengths`: what each stored
/// block begins with.
Result<std::vector<std::uint32_t>> read_vl_offsets(std::span<const std::int32_t> lengths, const ChunkHeader& header,
                                                   const std::vector<StoredBlock>& blocks);

}  // namespace cframefs::codec
