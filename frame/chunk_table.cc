#include "frame/chunk_table.h"

#include <algorithm>
#include <string>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

}  // namespace

Result<ChunkTable> ChunkTable::build(std::int64_t count, std::uint64_t total, const Measure& measure) {
  ChunkTable table;
  const auto chunks = static_cast<std::size_t>(count);
  std::vector<std::uint64_t>& begins = table.begins_;
  begins.assign(chunks + 1, 0);
  // First pass: begins[i + 1] is the end of chunk i, unknown ones counted as empty.
  std::uint64_t known = 0;
  std::optional<std::int64_t> first_unknown;
  std::int64_t last_unknown = 0;
  for (std::int64_t chunk = 0; chunk < count; ++chunk) {
    const auto size = measure(chunk);
    if (!size) return Failure(size.error());
    if (*size) {
      known += static_cast<std::uint64_t>(**size);
    } else {
      if (!first_unknown) first_unknown = chunk;
      last_unknown = chunk;
    }
    begins[static_cast<std::size_t>(chunk) + 1] = known;
  }
  if (known > total || (!first_unknown && known != total)) {
    return corrupt("the chunks hold " + std::to_string(known) + " bytes, the frame header says " +
                   std::to_string(total));
  }
  if (!first_unknown) return table;

  // What is behind the last unknown chunk is placed from the end.
  const std::uint64_t missing = total - known;
  for (auto i = static_cast<std::size_t>(last_unknown) + 1; i <= chunks; ++i)
    begins[i] += missing;
  const bool settled = *first_unknown == last_unknown && missing <= static_cast<std::uint64_t>(codec::kMaxChunkBytes);
  if (!settled) {
    table.unplaced_begin_ = *first_unknown;
    table.unplaced_end_ = last_unknown + 1;
    const std::uint64_t place = begins[static_cast<std::size_t>(*first_unknown)];
    for (std::int64_t chunk = *first_unknown; chunk <= last_unknown; ++chunk) {
      begins[static_cast<std::size_t>(chunk)] = place;
    }
  }
  return table;
}

Result<ChunkSpan> ChunkTable::locate(FlatOffset at) const {
  const auto behind = std::upper_bound(begins_.begin(), begins_.end(), at.value);
  const auto chunk = static_cast<std::int64_t>(behind - begins_.begin()) - 1;
  if (chunk >= unplaced_begin_ && chunk < unplaced_end_) {
    auto failure = corrupt("the sizes of several chunks are not known, and so not where they begin");
    failure.value().chunk = unplaced_begin_;
    return failure;
  }
  const std::uint64_t begin = *(behind - 1);
  return ChunkSpan{ChunkNumber{chunk}, FlatOffset{begin}, static_cast<std::uint32_t>(*behind - begin)};
}

std::optional<std::int32_t> ChunkTable::size(std::int64_t chunk) const {
  if (chunk >= unplaced_begin_ && chunk < unplaced_end_) return std::nullopt;
  const auto i = static_cast<std::size_t>(chunk);
  return static_cast<std::int32_t>(begins_[i + 1] - begins_[i]);
}

}  // namespace cframefs::frame
