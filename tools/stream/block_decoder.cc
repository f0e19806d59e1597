#include "tools/stream/block_decoder.h"

#include <algorithm>
#include <optional>

namespace cframefs::tools {

using codec::ByteRange;
using codec::ByteSpan;
using codec::ByteView;
using codec::Result;

namespace {

/// check() decodes this number of bytes at a time, or one block.
constexpr std::uint64_t kDecodedAtOnce = std::uint64_t{1} << 20;
/// check() frees the memory of a chunk with a block above this size.
constexpr std::uint64_t kLargeBlock = std::uint64_t{4} << 20;
/// Such a chunk waits for the budget if its uncompressed size exceeds this multiple of its stored size.
constexpr std::uint64_t kPlainPerStored = 8;
/// Buffers above this size are freed at the next smaller request.
constexpr std::size_t kKeep = std::size_t{64} << 20;

std::uint64_t largest_block(const codec::ChunkDecoder& decoder) {
  std::uint64_t largest = 0;
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block)
    largest = std::max(largest, decoder.block_range(block).size());
  return largest;
}

}  // namespace

void RawBuffer::trim(std::size_t keep) {
  if (capacity_ <= keep) return;
  memory_.reset();
  capacity_ = 0;
}

ByteSpan RawBuffer::of(std::size_t size) {
  if (size > capacity_ || capacity_ > std::max(size, kKeep)) {
    memory_.reset();
    memory_ = std::make_unique_for_overwrite<std::uint8_t[]>(size);
    capacity_ = size;
  }
  return {memory_.get(), size};
}

Result<ByteView> BlockDecoder::reference(const frame::ChunkReader& reader, std::uint32_t first) {
  if (!reader.decoder().needs_reference() || first == 0) return ByteView{};
  const ByteSpan block = reference_.of(reader.decoder().block_range(0).size());
  if (auto decoded = reader.decode(context_, 0, std::span(&block, 1), {}); !decoded) {
    return codec::Failure(decoded.error());
  }
  return ByteView(block);
}

Result<void> BlockDecoder::decode(const frame::ChunkReader& reader, std::uint32_t begin, ByteSpan out) {
  if (out.empty()) return {};
  const auto& decoder = reader.decoder();
  const std::uint64_t end = begin + out.size();
  const std::uint32_t first = decoder.block_at(begin);
  const std::uint32_t last = decoder.block_at(static_cast<std::uint32_t>(end - 1));
  const auto plain_reference = reference(reader, first);
  if (!plain_reference) return codec::Failure(plain_reference.error());

  // Blocks that extend beyond the range at either end are decoded into edges_; the others directly into `out`.
  std::vector<ByteSpan> outs;
  for (std::uint32_t block = first; block <= last; ++block) {
    const ByteRange range = decoder.block_range(block);
    const bool inside = range.begin >= begin && range.end <= end;
    outs.push_back(inside ? out.subspan(range.begin - begin, range.size())
                          : edges_[block == first ? 0 : 1].of(range.size()));
  }
  if (auto decoded = reader.decode(context_, first, outs, *plain_reference); !decoded) return decoded;
  for (std::uint32_t block : {first, last}) {
    const ByteRange range = decoder.block_range(block);
    if (range.begin >= begin && range.end <= end) continue;
    const ByteRange wanted{std::max<std::uint64_t>(range.begin, begin), std::min(range.end, end)};
    const ByteSpan decoded = outs[block - first].subspan(wanted.begin - range.begin, wanted.size());
    std::copy(decoded.begin(), decoded.end(), out.begin() + static_cast<std::ptrdiff_t>(wanted.begin - begin));
  }
  return {};
}

Result<void> BlockDecoder::check(const frame::ChunkReader& reader) {
  const auto& decoder = reader.decoder();
  // Special values contain no stream that could be damaged; opening the chunk has checked its header.
  if (decoder.header().special != codec::SpecialValue::none) return {};
  const std::uint64_t largest = largest_block(decoder);
  if (largest <= kLargeBlock) return check_blocks(reader);
  std::optional<fs::ByteBudget::Reservation> share;
  if (large_ != nullptr && decoder.nbytes() / kPlainPerStored > static_cast<std::uint64_t>(decoder.header().cbytes)) {
    const std::uint64_t plain = decoder.needs_reference() ? 2 * largest : largest;
    share.emplace(*large_, plain + reader.scratch_bytes(0, decoder.block_count()));
  }
  auto checked = check_blocks(reader);
  for (RawBuffer* buffer : {&reference_, &checked_})
    buffer->trim(kLargeBlock);
  context_.trim(kLargeBlock);
  return checked;
}

Result<void> BlockDecoder::check_blocks(const frame::ChunkReader& reader) {
  const auto& decoder = reader.decoder();
  const auto plain_reference = reference(reader, decoder.block_count() > 1 ? 1 : 0);
  if (!plain_reference) return codec::Failure(plain_reference.error());
  std::vector<ByteSpan> outs;
  for (std::uint32_t block = 0; block < decoder.block_count();) {
    const std::uint32_t first = block;
    std::uint64_t size = 0;
    do {
      size += decoder.block_range(block++).size();
    } while (block < decoder.block_count() && size + decoder.block_range(block).size() <= kDecodedAtOnce);
    ByteSpan buffer = checked_.of(size);
    outs.clear();
    for (std::uint32_t part = first; part < block; ++part) {
      const std::uint64_t length = decoder.block_range(part).size();
      outs.push_back(buffer.first(length));
      buffer = buffer.subspan(length);
    }
    if (auto decoded = reader.decode(context_, first, outs, *plain_reference); !decoded) return decoded;
  }
  return {};
}

}  // namespace cframefs::tools
