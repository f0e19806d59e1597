// Byte shuffle: the first bytes of all items, then the second bytes, and so on (filters.md section 3).
//
// `width` is the size of an item in bytes, 1 or more. Bytes at the end that do not fill an item keep their position.
// The functions in `plain` define the result, one byte at a time; the others compute the same bytes with vector
// instructions that are chosen at run time.
//
// Thread safety: pure functions. REQUIRES: in and out of equal length, not overlapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/base/bytes.h"

namespace cframefs::codec {

/// A view of one byte position of all items, in order.
class Plane {
 public:
  Plane() = default;
  explicit Plane(const std::uint8_t* bytes) : bytes_(bytes) {}
  /// Returns a plane with the same byte for all items.
  static Plane constant(std::uint8_t value);

  /// Returns a pointer to the bytes of the items from `item`; in a constant plane 32 bytes are readable.
  const std::uint8_t* from(std::size_t item) const { return bytes_ + (item & mask_); }
  /// Returns the plane of the items from `item`.
  Plane starting_at(std::size_t item) const { return {from(item), mask_}; }

 private:
  Plane(const std::uint8_t* bytes, std::size_t mask) : bytes_(bytes), mask_(mask) {}

  const std::uint8_t* bytes_ = nullptr;
  std::size_t mask_ = SIZE_MAX;  // 0: constant
};

inline constexpr std::size_t kMaxPlanes = 8;  // of unshuffle_planes()

void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);

/// Unshuffles planes that need not be contiguous; one per byte of an item, 2 to kMaxPlanes. REQUIRES: `out` holds whole
/// items and overlaps no plane.
void unshuffle_planes(std::span<const Plane> planes, ByteSpan out);

/// Computes the bytes from `begin` of the result of unshuffle_planes(); `out` may begin and end inside an item.
void unshuffle_window(std::span<const Plane> planes, std::size_t begin, ByteSpan out);

/// Undoes `times` successive shuffles in one pass, so that many cost no more than a few. Early releases shuffled
/// repeatedly (filters.md section 1).
void unshuffle_repeatedly(std::size_t width, std::size_t times, ByteView in, ByteSpan out);

namespace plain {
void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);
}  // namespace plain

}  // namespace cframefs::codec
