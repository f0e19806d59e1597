// Copies boxes: runs of bytes at regular distances in source and destination.
//
// Thread safety: functions and plain values. Units: bytes. Errors: none; the caller has checked the extents.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace cframefs::frame {

/// A run of `run` bytes, repeated along `depth` levels: levels[0] is the outermost, levels[depth - 1] the innermost.
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

  /// Returns the number of bytes of the box.
  std::uint64_t volume() const;
  /// Returns the distance in the source from the first byte of the box to one past the last.
  std::uint64_t from_span() const;
  /// Adds a level around the existing ones, or merges it with them if it is contiguous. REQUIRES: the caller adds
  /// levels from the innermost to the outermost, then calls finish() once.
  void wrap(const Level& level);
  void finish();
};

/// Copies the box. `from` and `to`: its first byte in the source and in the destination.
void copy_box(const StridedBox& box, const std::uint8_t* from, std::uint8_t* to);
/// Fills the box with zeros. `to`: its first byte.
void clear_box(const StridedBox& box, std::uint8_t* to);

/// Calls visit(from, to) for each run in order, with its offsets from the first byte of the box in source and
/// destination. Stops and returns false if visit() returns false.
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
