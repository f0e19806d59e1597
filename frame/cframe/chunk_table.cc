#include "frame/cframe/chunk_table.h"

#include <algorithm>
#include <string>
#include <utility>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

Failure contradiction(std::uint64_t known, std::uint64_t total) {
  return corrupt("the chunks hold at least " + std::to_string(known) + " bytes, but the frame header says " +
                 std::to_string(total));
}

}  // namespace

Result<ChunkTable> ChunkTable::build(std::uint64_t total, const Measure& measure) {
  ChunkTable table;
  std::uint64_t known = 0;
  std::int64_t chunk = 0;
  std::optional<std::int64_t> last_unknown;
  for (;;) {
    const auto sizes = measure();
    if (!sizes) return Failure(sizes.error());
    if (!*sizes) break;
    table.append({chunk, known, (*sizes)->nbytes}, **sizes);
    chunk += (*sizes)->count;
    if ((*sizes)->nbytes) {
      // Cannot overflow: at most IndexEncoder::kMaxEntries chunks of less than 2 GiB each.
      known += static_cast<std::uint64_t>(*(*sizes)->nbytes) * static_cast<std::uint64_t>((*sizes)->count);
      if (known > total) return contradiction(known, total);
    } else {
      last_unknown = chunk - 1;
    }
  }
  if (!last_unknown && known != total) return contradiction(known, total);
  if (last_unknown) table.settle(*last_unknown, total - known);
  return table;
}

void ChunkTable::append(const Segment& segment, const Sizes& sizes) {
  if (sizes.count > 0 && (segments_.empty() || segments_.back().nbytes != segment.nbytes)) segments_.push_back(segment);
}

/// Assigns the `missing` bytes to the chunks of unknown size, of which `last` is the last, and moves the begins of the
/// chunks after `last`.
void ChunkTable::settle(std::int64_t last, std::uint64_t missing) {
  const auto is_unknown = [](const Segment& segment) { return !segment.nbytes; };
  const auto first = std::find_if(segments_.begin(), segments_.end(), is_unknown);
  const auto after =
      std::find_if(first, segments_.end(), [last](const Segment& segment) { return segment.first > last; });
  for (auto segment = after; segment != segments_.end(); ++segment)
    segment->begin += missing;
  if (first->first == last && missing <= static_cast<std::uint64_t>(codec::kMaxChunkBytes)) {
    first->nbytes = static_cast<std::int32_t>(missing);
  } else {
    segments_.erase(first + 1, after);
  }
}

Result<ChunkSpan> ChunkTable::chunk_at(FlatOffset at) const {
  const auto after =
      std::upper_bound(segments_.begin(), segments_.end(), at.value,
                       [](std::uint64_t value, const Segment& segment) { return value < segment.begin; });
  const Segment& segment = *(after - 1);
  if (!segment.nbytes) {
    auto failure = corrupt("several chunks have an unknown size, so their offsets are unknown, too");
    failure.value().chunk = segment.first;
    return failure;
  }
  // `size` is not 0: an empty chunk begins where the next one does, and upper_bound() finds the last of these.
  const auto size = static_cast<std::uint64_t>(*segment.nbytes);
  const std::uint64_t number = (at.value - segment.begin) / size;
  return ChunkSpan{ChunkNumber{segment.first + static_cast<std::int64_t>(number)},
                   FlatOffset{segment.begin + number * size}, static_cast<std::uint32_t>(size)};
}

std::optional<std::int32_t> ChunkTable::size(std::int64_t chunk) const {
  const auto after = std::upper_bound(segments_.begin(), segments_.end(), chunk,
                                      [](std::int64_t value, const Segment& segment) { return value < segment.first; });
  return (after - 1)->nbytes;
}

}  // namespace cframefs::frame
