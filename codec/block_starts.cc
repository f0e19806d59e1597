#include "codec/block_starts.h"

#include <algorithm>
#include <string>

namespace cframefs::codec {
namespace {

constexpr std::int64_t kLengthField = 4;

// Threads write the blocks as they finish them, so the next block in the file need not be the next one in number.
void find_ends_of_unordered(std::vector<StoredBlock>& blocks, std::uint32_t chunk_end) {
  std::vector<std::uint32_t> starts(blocks.size());
  std::transform(blocks.begin(), blocks.end(), starts.begin(), [](const StoredBlock& block) { return block.begin; });
  std::sort(starts.begin(), starts.end());
  for (StoredBlock& block : blocks) {
    const auto next = std::upper_bound(starts.begin(), starts.end(), block.begin);
    block.end = next == starts.end() ? chunk_end : *next;
  }
}

}  // namespace

Result<std::vector<StoredBlock>> read_block_starts(ByteView chunk, const ChunkHeader& header, std::uint32_t count,
                                                   std::uint64_t blocks_begin) {
  const auto chunk_end = static_cast<std::uint32_t>(header.cbytes);
  std::vector<StoredBlock> blocks(count);
  bool increasing = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto start = load_le<std::int32_t>(&chunk[header.length + std::size_t{4} * i]);
    if (start < 0 || static_cast<std::uint64_t>(start) < blocks_begin || start > header.cbytes - kLengthField) {
      return corrupt("block " + std::to_string(i) + " starts at " + std::to_string(start) +
                     ", outside the chunk's data");
    }
    blocks[i] = {static_cast<std::uint32_t>(start), chunk_end};
    if (i == 0) continue;
    increasing = increasing && blocks[i].begin > blocks[i - 1].begin;
    blocks[i - 1].end = blocks[i].begin;
  }
  if (increasing) return blocks;
  if (header.vl_blocks) return corrupt("blocks of variable length are out of order");
  find_ends_of_unordered(blocks, chunk_end);
  return blocks;
}

Result<std::vector<std::uint32_t>> read_vl_offsets(ByteView chunk, const ChunkHeader& header,
                                                   const std::vector<StoredBlock>& blocks) {
  std::vector<std::uint32_t> offsets;
  offsets.reserve(blocks.size() + 1);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    offsets.push_back(static_cast<std::uint32_t>(offset));
    if (blocks[i].end - blocks[i].begin <= kLengthField) return corrupt("block " + std::to_string(i) + " has no data");
    const auto length = load_le<std::int32_t>(&chunk[blocks[i].begin]);
    if (length < 1 || length > header.nbytes - offset) {
      return corrupt("block " + std::to_string(i) + " has the length " + std::to_string(length));
    }
    offset += length;
  }
  if (offset != header.nbytes) {
    return corrupt("the blocks hold " + std::to_string(offset) + " bytes, not " + std::to_string(header.nbytes));
  }
  offsets.push_back(static_cast<std::uint32_t>(offset));
  return offsets;
}

}  // namespace cframefs::codec
