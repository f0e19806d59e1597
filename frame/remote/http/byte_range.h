// A range of the bytes of an object.
//
// Thread safety: values and pure functions. Ownership: values. Errors: none.
#pragma once

#include <algorithm>
#include <cstdint>
#include <cstring>

#include "codec/base/bytes.h"

namespace cframefs::frame {

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;  // exclusive; not before begin

  bool operator==(const ByteRange&) const = default;
  std::uint64_t size() const { return end - begin; }
  bool empty() const { return end == begin; }
  bool contains(ByteRange other) const { return begin <= other.begin && other.end <= end; }
  bool overlaps(ByteRange other) const { return begin < other.end && other.begin < end; }
};

/// Returns the common part, empty if there is none.
inline ByteRange common_part(ByteRange one, ByteRange other) {
  const std::uint64_t begin = std::max(one.begin, other.begin);
  return {begin, std::max(begin, std::min(one.end, other.end))};
}

/// Returns the least range that holds both.
inline ByteRange hull_of(ByteRange one, ByteRange other) {
  return {std::min(one.begin, other.begin), std::max(one.end, other.end)};
}

/// Returns the least range with bounds that are multiples of `unit`, cut at `end`, that holds the range.
inline ByteRange rounded_out(ByteRange range, std::uint64_t unit, std::uint64_t end) {
  const std::uint64_t rest = range.end % unit;
  const std::uint64_t rounded = rest == 0 ? range.end : range.end + std::min(unit - rest, UINT64_MAX - range.end);
  return {range.begin - range.begin % unit, std::max(range.end, std::min(rounded, end))};
}

/// Copies the common part of two ranges from the bytes of the one to the bytes of the other.
inline void copy_common(ByteRange from_range, codec::ByteView from, ByteRange to_range, codec::ByteSpan to) {
  const ByteRange part = common_part(from_range, to_range);
  if (part.empty()) return;
  std::memcpy(to.data() + (part.begin - to_range.begin), from.data() + (part.begin - from_range.begin), part.size());
}

}  // namespace cframefs::frame
