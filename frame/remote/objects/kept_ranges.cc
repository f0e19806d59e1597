#include "frame/remote/objects/kept_ranges.h"

#include <algorithm>
#include <utility>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kBlockBytes = RangeStore::kBlockBytes;

std::array<ByteRange, 2> ends_of(std::uint64_t length) {
  constexpr std::uint64_t kHead = KeptRanges::kHeadBytes;
  const std::uint64_t tail = KeptRanges::tail_bytes(length);
  if (length <= kHead + tail) return {ByteRange{0, length}, ByteRange{0, length}};
  return {ByteRange{0, kHead}, ByteRange{length - tail, length}};
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

std::uint64_t KeptRanges::tail_bytes(std::uint64_t length) {
  constexpr std::uint64_t kShare = 1024;  // a digest of 8 bytes for each 8 KiB that are stored
  return std::clamp(length / kShare, kLeastTail, kMostTail);
}

KeptRanges::KeptRanges(RangeStore& store, std::string text, std::uint64_t length)
    : store_(store), text_(std::move(text)), length_(length), ends_(ends_of(length)) {}

ByteRange KeptRanges::block_range(std::uint64_t block) const {
  return common_part({block * kBlockBytes, (block + 1) * kBlockBytes}, {0, length_});
}

bool KeptRanges::prepare_all(ByteRange range) const {
  for (std::uint64_t begin = range.begin; begin < range.end; begin = block_range(begin / kBlockBytes).end) {
    if (!prepare(begin / kBlockBytes)) return false;
  }
  return true;
}

bool KeptRanges::may_have_all(ByteRange range) const {
  for (std::uint64_t begin = range.begin; begin < range.end; begin = block_range(begin / kBlockBytes).end) {
    if (!may_have(begin / kBlockBytes)) return false;
  }
  return true;
}

bool KeptRanges::read(ByteRange part, codec::ByteSpan into) const {
  const std::uint64_t block = part.begin / kBlockBytes;
  const ByteRange whole = block_range(block);
  return store_.read(text_, {block, whole.size(), part.begin - whole.begin}, into);
}

std::optional<KeptRanges::Found> KeptRanges::find_end(std::size_t end) const {
  auto bytes = store_.find(end_text(end), 0);
  if (!bytes || bytes->empty()) return std::nullopt;
  if (end == 0) {
    if (bytes->size() != ends_[0].size()) return std::nullopt;
    return Found{ends_[0], std::move(*bytes)};
  }
  if (bytes->size() > longest_tail().size()) return std::nullopt;
  return Found{{length_ - bytes->size(), length_}, std::move(*bytes)};
}

std::optional<KeptRanges::Found> KeptRanges::find_at_ends(ByteRange part) const {
  const std::array<ByteRange, 2> longest{ends_[0], longest_tail()};
  for (std::size_t end = 0; end < longest.size(); ++end) {
    if (!longest.at(end).contains(part) || !store_.may_have(end_text(end), 0)) continue;
    auto found = find_end(end);
    if (found && found->range.contains(part)) return found;
  }
  return std::nullopt;
}

void KeptRanges::keep(FetchedRanges& memory, const ObjectId& object, ByteRange fetched, codec::ByteView bytes) const {
  if (!keeps() || fetched.empty()) return;
  for (std::uint64_t block = fetched.begin / kBlockBytes; block <= (fetched.end - 1) / kBlockBytes; ++block) {
    const ByteRange range = block_range(block);
    if (fetched.contains(range)) {
      store_.keep(text_, block, bytes.subspan(range.begin - fetched.begin, range.size()));
    } else if (const auto whole = collect(memory, object, range)) {
      store_.keep(text_, block, *whole);
    }
  }
  keep_ends(memory, object, fetched, bytes);
}

void KeptRanges::keep_ends(FetchedRanges& memory, const ObjectId& object, ByteRange fetched,
                           codec::ByteView bytes) const {
  if (fetched == ends_[0]) return store_.keep(end_text(0), 0, bytes);
  const ByteRange unknown_tail{length_ - std::min(length_, kUnknownTail), length_};
  if (fetched != unknown_tail && !ends_[1].contains(fetched)) return;
  if (fetched.contains(ends_[1])) return store_.keep(end_text(1), 0, bytes);
  // A part of the last bytes: all of them, if the memory has the rest.
  if (const auto whole = collect(memory, object, ends_[1])) {
    store_.keep(end_text(1), 0, *whole);
  } else if (fetched == unknown_tail) {
    store_.keep(end_text(1), 0, bytes);
  }
}

}  // namespace cframefs::frame
