#include "frame/container/chunk_requests.h"

#include <algorithm>

#include "codec/format/chunk_header.h"

namespace cframefs::frame {

namespace {

using codec::ByteRange;

/// Chunks that store at most this much are fetched whole: one request costs more than the rest of such a chunk.
constexpr std::uint64_t kMostWhole = std::uint64_t{1} << 20;
/// While many readers wait, the rest of a chunk that is longer than this costs them more than a request.
constexpr std::uint64_t kMostWholeIfBusy = std::uint64_t{128} << 10;
/// More than any chunk has beyond its uncompressed bytes and 1/16 of them: header, block starts, lengths of streams.
constexpr std::uint64_t kMostOverhead = 4096;
constexpr std::uint64_t kHeader = 32;
constexpr std::uint64_t kLeastTables = std::uint64_t{16} << 10;  // bytes beyond the block starts cost next to nothing
constexpr std::uint64_t kMostTables = std::uint64_t{256} << 10;  // a header may claim any number of blocks
constexpr std::uint64_t kLeastMargin = std::uint64_t{128} << 10;
constexpr std::uint64_t kMarginBlocks = 2;
constexpr std::uint64_t kLeastMarginIfBusy = std::uint64_t{16} << 10;
constexpr std::uint64_t kBlockMarginsIfBusy = 4;                 // of a block before and after the one that is needed
constexpr std::uint64_t kUsualBlock = std::uint64_t{256} << 10;  // uncompressed bytes, if each chunk has its own size
constexpr std::uint64_t kMostWindow = std::uint64_t{8} << 20;
/// Ranges that are not farther apart are requested as one.
constexpr std::uint64_t kMergedGap = std::uint64_t{64} << 10;

/// Returns an upper bound of the stored length: the chunk ends where the next one begins, unless the chunks are stored
/// in another order.
std::uint64_t longest_stored(const Container& container, ChunkNumber chunk, const ChunkLocation& location) {
  std::uint64_t length = location.limit;
  if (chunk.value + 1 < container.chunk_count()) {
    const auto next = container.locate_chunk(ChunkNumber{chunk.value + 1});
    if (next && next->special == codec::SpecialValue::none && next->source == location.source &&
        next->offset > location.offset)
      length = std::min(length, next->offset.value - location.offset.value);
  }
  if (location.nbytes >= 0) {
    const auto plain = static_cast<std::uint64_t>(location.nbytes);
    length = std::min(length, plain + plain / 16 + kMostOverhead);
  }
  return length;
}

/// A long chunk, as far as it is known before its header is read.
struct LongChunk {
  std::uint64_t stored = 0;
  std::uint64_t plain = 0;      // 0: not known
  std::uint64_t blocksize = 0;  // 0: not known
  std::uint64_t blocks = 0;     // 0: not known
  bool needs_first_block = false;

  /// Returns the stored bytes of a block.
  std::uint64_t mean_block() const {
    const std::uint64_t count = blocks != 0 ? blocks : plain / kUsualBlock;
    return stored / std::max<std::uint64_t>(count, 1);
  }
  /// Returns the range that opening the chunk reads.
  ByteRange tables() const {
    std::uint64_t length = std::clamp(kHeader + 4 * blocks, kLeastTables, kMostTables);
    if (needs_first_block) length += std::min(kMarginBlocks * mean_block(), kMostWindow);
    return {0, std::min(length, stored)};
  }
  /// Returns where the stored bytes of `part` probably lie.
  ByteRange window(const ByteRange& part) const {
    const std::uint64_t margin = std::max(kLeastMargin, kMarginBlocks * mean_block());
    const std::uint64_t begin = place_of(part.begin) - std::min(place_of(part.begin), margin);
    const std::uint64_t end = std::min({place_of(part.end) + margin, begin + kMostWindow, stored});
    return {std::min(begin, end), end};
  }
  /// Returns where the blocks of `part` probably lie, with as few other bytes as blocks that are compressed nearly
  /// alike allow. REQUIRES: blocks > 0.
  ByteRange narrow_window(const ByteRange& part) const {
    const std::uint64_t margin = std::max(kLeastMarginIfBusy, mean_block() / kBlockMarginsIfBusy);
    const std::uint64_t first = place_of(part.begin / blocksize * blocksize);
    const std::uint64_t last = place_of((part.end + blocksize - 1) / blocksize * blocksize);
    const std::uint64_t begin = first - std::min(first, margin);
    return {begin, std::min({last + margin, begin + kMostWindow, stored})};
  }

 private:
  std::uint64_t place_of(std::uint64_t inner) const {
    const double share = static_cast<double>(std::min(inner, plain)) / static_cast<double>(plain);
    return std::min(static_cast<std::uint64_t>(static_cast<double>(stored) * share), stored);
  }
};

LongChunk long_chunk(const Container& container, const ChunkLocation& location, std::uint64_t stored) {
  const FrameParameters& parameters = container.parameters();
  LongChunk chunk;
  chunk.stored = stored;
  const std::int32_t plain = location.nbytes >= 0 ? location.nbytes : parameters.chunksize;
  if (plain > 0) chunk.plain = static_cast<std::uint64_t>(plain);
  if (const std::int32_t blocksize = container.likely_blocksize(); plain > 0 && blocksize > 0) {
    chunk.blocksize = static_cast<std::uint64_t>(blocksize);
    chunk.blocks = (chunk.plain + chunk.blocksize - 1) / chunk.blocksize;
  }
  chunk.needs_first_block =
      plain > 0 && std::find(parameters.filters.begin(), parameters.filters.end(),
                             static_cast<std::uint8_t>(codec::FilterId::delta)) != parameters.filters.end();
  return chunk;
}

void prefetch(const ChunkLocation& location, const ByteRange& range) {
  location.source->prefetch(FileOffset{location.offset.value + range.begin}, range.size());
}

}  // namespace

void request_chunk(const Container& container, ChunkNumber chunk, const ChunkLocation& location,
                   const std::optional<ByteRange>& soon) {
  const std::uint64_t stored = longest_stored(container, chunk, location);
  const LongChunk known = long_chunk(container, location, stored);
  const bool is_busy = soon && known.blocks > 1 && stored > kMostWholeIfBusy && location.source->is_busy();
  const bool is_whole = stored <= kMostWhole && !is_busy;
  ByteRange first = is_whole ? ByteRange{0, stored} : known.tables();
  // If the source has no room to fetch ahead, the first read fetches all of it.
  location.source->expect(location.offset, first.size());
  if (!is_whole && soon && known.plain > 0) {
    const ByteRange window = is_busy ? known.narrow_window(*soon) : known.window(*soon);
    if (window.begin > first.end + kMergedGap) {
      prefetch(location, window);
    } else {
      first.end = std::max(first.end, window.end);
    }
  }
  prefetch(location, first);
}

}  // namespace cframefs::frame
