#include "frame/remote/objects/kept_ranges.h"

#include <utility>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kBlockBytes = RangeStore::kBlockBytes;

std::array<ByteRange, 2> ends_of(std::uint64_t length) {
  constexpr std::uint64_t kEnd = KeptRanges::kEndBytes;
  if (length <= 2 * kEnd) return {ByteRange{0, length}, ByteRange{0, length}};
  return {ByteRange{0, kEnd}, ByteRange{length - kEnd, length}};
}

/// Copies a range from memory, unless the memory lacks a part of it.
std::optional<std::vector<std::uint8_t>> collect(FetchedRanges& memory, const ObjectId& object, ByteRange range) {
  const auto pieces = memory.find(object, range);
  if (pieces.empty()) return std::nullopt;
  std::vector<std::uint8_t> whole(range.size());
  for (const auto& piece : pieces) {
    const auto bytes = piece.fetch->wait();
    if (!bytes) return std::nullopt;
    copy_common(piece.range, *bytes, range, whole);
  }
  return whole;
}

}  // namespace

KeptRanges::KeptRanges(RangeStore& store, std::string text, std::uint64_t length)
    : store_(store), text_(std::move(text)), length_(length), ends_(ends_of(length)) {}

ByteRange KeptRanges::block_range(std::uint64_t block) const {
  return common_part({block * kBlockBytes, (block + 1) * kBlockBytes}, {0, length_});
}

std::optional<KeptRanges::Found> KeptRanges::find(ByteRange part) const {
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    if (!ends_.at(end).contains(part)) continue;
    auto bytes = store_.find(end_text(end), 0);
    if (bytes && bytes->size() == ends_.at(end).size()) return Found{ends_.at(end), std::move(*bytes)};
  }
  const std::uint64_t block = part.begin / kBlockBytes;
  auto bytes = store_.find(text_, block);
  if (!bytes || bytes->size() != block_range(block).size()) return std::nullopt;
  return Found{block_range(block), std::move(*bytes)};
}

void KeptRanges::keep(FetchedRanges& memory, const ObjectId& object, ByteRange fetched, codec::ByteView bytes) const {
  if (!keeps() || fetched.empty()) return;
  const auto keep_range = [&](const std::string& text, std::uint64_t block, ByteRange range) {
    if (fetched.contains(range)) {
      return store_.keep(text, block, bytes.subspan(range.begin - fetched.begin, range.size()));
    }
    if (const auto whole = collect(memory, object, range)) store_.keep(text, block, *whole);
  };
  for (std::uint64_t block = fetched.begin / kBlockBytes; block <= (fetched.end - 1) / kBlockBytes; ++block)
    keep_range(text_, block, block_range(block));
  for (std::size_t end = 0; end < ends_.size(); ++end) {
    if (ends_.at(end) == fetched) return keep_range(end_text(end), 0, fetched);
  }
}

}  // namespace cframefs::frame
