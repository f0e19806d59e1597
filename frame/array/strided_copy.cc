#include "frame/array/strided_copy.h"

#include <algorithm>
#include <cstring>

namespace cframefs::frame {

namespace {

/// Copies one level. kRun != 0: the run length at compile time, so that memcpy() becomes one load and one store.
template <std::size_t kRun>
void copy_line(std::uint64_t count, const std::uint8_t* from, std::uint64_t from_stride, std::uint8_t* to,
               std::uint64_t to_stride, std::uint64_t run) {
  const std::size_t length = kRun == 0 ? run : kRun;
  for (; count > 0; --count, from += from_stride, to += to_stride)
    std::memcpy(to, from, length);
}

using CopyLine = decltype(&copy_line<0>);

CopyLine copier_for(std::uint64_t run) {
  switch (run) {
    case 1:
      return copy_line<1>;
    case 2:
      return copy_line<2>;
    case 4:
      return copy_line<4>;
    case 8:
      return copy_line<8>;
    case 16:
      return copy_line<16>;
    case 32:
      return copy_line<32>;
    case 64:
      return copy_line<64>;
    default:
      return copy_line<0>;
  }
}

}  // namespace

std::uint64_t StridedBox::volume() const {
  std::uint64_t bytes = run;
  for (std::size_t i = 0; i < depth; ++i)
    bytes *= levels[i].count;
  return bytes;
}

std::uint64_t StridedBox::from_span() const {
  std::uint64_t bytes = run;
  for (std::size_t i = 0; i < depth; ++i)
    bytes += (levels[i].count - 1) * levels[i].from_stride;
  return bytes;
}

void StridedBox::wrap(const Level& level) {
  if (level.count == 1) return;
  if (depth == 0 && level.from_stride == run && level.to_stride == run) {
    run *= level.count;
    return;
  }
  if (depth > 0) {
    Level& inner = levels[depth - 1];
    if (level.from_stride == inner.count * inner.from_stride && level.to_stride == inner.count * inner.to_stride) {
      inner.count *= level.count;
      return;
    }
  }
  levels[depth++] = level;
}

void StridedBox::finish() {
  std::reverse(levels.begin(), levels.begin() + static_cast<std::ptrdiff_t>(depth));
}

void copy_box(const StridedBox& box, const std::uint8_t* from, std::uint8_t* to) {
  const CopyLine copy = copier_for(box.run);
  if (box.depth == 0) {
    copy(1, from, 0, to, 0, box.run);
    return;
  }
  // copy() handles the innermost level, for_each_run() the levels around it.
  StridedBox around = box;
  const StridedBox::Level line = around.levels[--around.depth];
  for_each_run(around, [&](std::uint64_t from_at, std::uint64_t to_at) {
    copy(line.count, from + from_at, line.from_stride, to + to_at, line.to_stride, box.run);
    return true;
  });
}

void clear_box(const StridedBox& box, std::uint8_t* to) {
  for_each_run(box, [&](std::uint64_t /*from*/, std::uint64_t to_at) {
    std::memset(to + to_at, 0, box.run);
    return true;
  });
}

}  // namespace cframefs::frame
