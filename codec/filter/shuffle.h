// Byte shuffle: the first bytes of all items, then the second bytes, and so on (filters.md section 3).
//
// `width` is the size of an item in bytes, 1 or more. Bytes at the end that do not fill an item stay where they are.
// The versions in `plain` say what is meant, one byte at a time; the others give the same bytes with vector
// instructions that are chosen when the program runs.
//
// Thread safety: pure functions. REQUIRES: in and out of equal length, not overlapping.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "codec/base/bytes.h"

namespace cframefs::codec {

/// One byte of all items, in order, wherever that lies. Does not own it.
class Plane {
 public:
  Plane() = default;
  explicit Plane(const std::uint8_t* bytes) : bytes_(bytes) {}
  /// The same byte in all items.
  static Plane constant(std::uint8_t value);

  /// That of the items from `item` on, as far as there are such, but at least 32 bytes of a constant plane.
  const std::uint8_t* from(std::size_t item) const { return bytes_ + (item & mask_); }
  /// The plane of those items.
  Plane behind(std::size_t item) const { return {from(item), mask_}; }

 private:
  Plane(const std::uint8_t* bytes, std::size_t mask) : bytes_(bytes), mask_(mask) {}

  const std::uint8_t* bytes_ = nullptr;
  std::size_t mask_ = SIZE_MAX;  // 0: constant
};

inline constexpr std::size_t kMaxPlanes = 8;  // of unshuffle_planes()

void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);

/// unshuffle() of planes that need not lie together; as many as an item has bytes, 2 to kMaxPlanes.
/// REQUIRES: `out` holds whole items, and does not overlap with any plane.
void unshuffle_planes(std::span<const Plane> planes, ByteSpan out);

/// The bytes from `begin` on of what unshuffle_planes() would give; `out` may begin and end within an item.
void unshuffle_window(std::span<const Plane> planes, std::size_t begin, ByteSpan out);

/// Undoes `times` shuffles one on top of the other, in one pass, so that a large number costs no more than a small one.
/// (Early releases did that; filters.md section 1.)
void unshuffle_repeatedly(std::size_t width, std::size_t times, ByteView in, ByteSpan out);

namespace plain {
void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);
}  // namespace plain

}  // namespace cframefs::codec
