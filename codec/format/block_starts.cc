#include "codec/format/block_starts.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

namespace cframefs::codec {
namespace {

constexpr std::int64_t kLengthField = 4;

/// Stored bytes that a variable-length block may have beyond its uncompressed length: writers store a block
/// uncompressed if it would grow.
constexpr std::int64_t kVlSlack = 1024;

// Writers with several threads store blocks in order of completion: block i + 1 need not follow block i in the file.
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

Result<void> check_block_starts(ByteView starts, std::uint32_t first, const ChunkHeader& header,
                                std::uint64_t blocks_begin) {
  for (std::size_t i = 0; i < starts.size() / sizeof(std::int32_t); ++i) {
    const auto start = load_le<std::int32_t>(&starts[i * sizeof(std::int32_t)]);
    if (start >= 0 && static_cast<std::uint64_t>(start) >= blocks_begin && start <= header.cbytes - kLengthField) {
      continue;
    }
    return corrupt(fmt::format("block {} starts at {}, allowed are {} to {}", first + i, start, blocks_begin,
                               header.cbytes - kLengthField));
  }
  return {};
}

Result<std::vector<StoredBlock>> read_block_starts(ByteView chunk, const ChunkHeader& header, std::uint32_t count,
                                                   std::uint64_t blocks_begin) {
  const auto chunk_end = static_cast<std::uint32_t>(header.cbytes);
  const ByteView starts = chunk.subspan(header.length, std::size_t{4} * count);
  if (auto good = check_block_starts(starts, 0, header, blocks_begin); !good) return Failure(good.error());
  std::vector<StoredBlock> blocks(count);
  bool increasing = true;
  for (std::uint32_t i = 0; i < count; ++i) {
    const auto start = load_le<std::int32_t>(&starts[std::size_t{4} * i]);
    blocks[i] = {static_cast<std::uint32_t>(start), chunk_end};
    if (i == 0) continue;
    increasing = increasing && blocks[i].begin > blocks[i - 1].begin;
    blocks[i - 1].end = blocks[i].begin;
  }
  if (increasing) return blocks;
  if (header.vl_blocks) return corrupt("the starts of variable-length blocks are not ascending");
  find_ends_of_unordered(blocks, chunk_end);
  return blocks;
}

Result<std::vector<std::uint32_t>> read_vl_offsets(std::span<const std::int32_t> lengths, const ChunkHeader& header,
                                                   const std::vector<StoredBlock>& blocks) {
  if (lengths.size() != blocks.size())
    return invalid(fmt::format("{} lengths for {} blocks", lengths.size(), blocks.size()));
  std::vector<std::uint32_t> offsets;
  offsets.reserve(blocks.size() + 1);
  std::int64_t offset = 0;
  for (std::size_t i = 0; i < blocks.size(); ++i) {
    offsets.push_back(static_cast<std::uint32_t>(offset));
    const std::int64_t stored = std::int64_t{blocks[i].end} - blocks[i].begin - kLengthField;
    if (stored <= 0) return corrupt(fmt::format("block {} has no data", i));
    const std::int64_t length = lengths[i];
    if (length < 1 || length > header.nbytes - offset) {
      return corrupt(fmt::format("block {} has length {}, allowed are 1 to {}", i, length, header.nbytes - offset));
    }
    if (stored > length + length / 16 + kVlSlack) {
      return corrupt(fmt::format("block {} stores {} bytes in {}", i, length, stored));
    }
    offset += length;
  }
  if (offset != header.nbytes) {
    return corrupt(fmt::format("the blocks hold {} bytes, nbytes is {}", offset, header.nbytes));
  }
  offsets.push_back(static_cast<std::uint32_t>(offset));
  return offsets;
}

}  // namespace cframefs::codec
