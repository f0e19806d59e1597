// Copies of boxes: runs of bytes that lie at regular distances on either side.
//
// Thread safety: functions and plain values. Units: bytes. Errors: none; the caller has checked the extents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cframefs::frame {

/// `run` bytes, over and over: levels[0] is the outermost repetition, levels[depth - 1] the innermost.
struct StridedBox {
  static constexpr std::size_t kMaxLevels = 16;
  struct Level {
    std::uint64_t count = 0;
    std::uint64_t from_stride = 0;
    std::uint64_t to_stride = 0;
  };

  std::uint64_t run = 0;
  std::size_t depth = 0;
  std::array<Level, kMaxLevels> levels;

  /// All bytes of the box.
  std::uint64_t volume() const;
  /// From the first byte of the box to its last, on the side it is copied from.
  std::uint64_t from_span() const;
  /// Adds a level around what is there; a contiguous one makes the run longer. REQUIRES: levels are added from the
  /// innermost outwards, then finish() is called once.
  void wrap(const Level& level);
  void finish();
};

/// `from` and `to`: the first byte of the box on either side.
void copy_box(const StridedBox& box, const std::uint8_t* from, std::uint8_t* to);
/// Zeros instead.
void clear_box(const StridedBox& box, std::uint8_t* to);

/// Calls visit(from, to) with the distance of each run from the first byte of the box, on either side, in order.
/// Stops, and returns false, when it returns false.
template <class Visit>
bool for_each_run(const StridedBox& box, Visit visit) {
  std::array<std::uint64_t, StridedBox::kMaxLevels> done{};
  std::uint64_t from = 0;
  std::uint64_t to = 0;
  for (;;) {
    if (!visit(from, to)) return false;
    std::size_t level = box.depth;
    for (; level > 0; --level) {
      const StridedBox::Level& l = box.levels[level - 1];
      from += l.from_stride;
      to += l.to_stride;
      if (++done[level - 1] < l.count) break;
      from -= l.count * l.from_stride;
      to -= l.count * l.to_stride;
      done[level - 1] = 0;
    }
    if (level == 0) return true;
  }
}

}  // namespace cframefs::frame
