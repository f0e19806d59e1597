#include "codec/filter/shuffle.h"

#include <algorithm>
#include <array>
#include <cstring>

// Scalable vectors cannot be stored in arrays; machines that have them use vectors of fixed length.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/filter/shuffle.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/filter/byte_transpose-inl.h"

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec::HWY_NAMESPACE {

// The vector_ functions return how many rows they processed, counted from the first.
#if HWY_TARGET == HWY_SCALAR

std::size_t vector_unshuffle(std::size_t, const std::uint8_t*, std::size_t, std::uint8_t*) {
  return 0;
}
std::size_t vector_unshuffle_planes(std::size_t, const Plane*, std::size_t, std::uint8_t*) {
  return 0;
}
std::size_t vector_shuffle(std::size_t, const std::uint8_t*, std::size_t, std::uint8_t*) {
  return 0;
}

#else

template <std::size_t n, class Planes>
std::size_t narrow_to_rows(std::size_t width, const Planes& planes, std::uint8_t* rows, std::size_t count) {
  return width == n ? planes_to_rows<n, true>(width, planes, rows, count)
                    : planes_to_rows<n, false>(width, planes, rows, count);
}

// Converts up to eight planes to rows.
template <class Planes>
std::size_t few_to_rows(std::size_t width, const Planes& planes, std::uint8_t* rows, std::size_t count) {
  if (width > 4) return narrow_to_rows<8>(width, planes, rows, count);
  if (width > 2) return narrow_to_rows<4>(width, planes, rows, count);
  return narrow_to_rows<2>(width, planes, rows, count);
}

template <std::size_t n>
std::size_t narrow_to_planes(std::size_t width, const std::uint8_t* rows, std::uint8_t* planes, std::size_t count) {
  return width == n ? rows_to_planes<n, true>(width, rows, planes, count, count)
                    : rows_to_planes<n, false>(width, rows, planes, count, count);
}

std::size_t vector_unshuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  if (width >= 16) return wide_planes_to_rows(width, in, count, out, count);
  if (width > 8) return planes_to_rows<16, false>(width, EvenPlanes{in, count}, out, count);
  return few_to_rows(width, EvenPlanes{in, count}, out, count);
}

struct ScatteredPlanes {
  HWY_INLINE Plane operator[](std::size_t j) const { return planes[j]; }
  const Plane* planes;
};

std::size_t vector_unshuffle_planes(std::size_t width, const Plane* planes, std::size_t count, std::uint8_t* out) {
  return few_to_rows(width, ScatteredPlanes{planes}, out, count);
}

std::size_t vector_shuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  if (width >= 16) return wide_rows_to_planes(width, in, out, count, count);
  if (width > 8) return rows_to_planes<16, false>(width, in, out, count, count);
  if (width > 4) return narrow_to_planes<8>(width, in, out, count);
  if (width > 2) return narrow_to_planes<4>(width, in, out, count);
  return narrow_to_planes<2>(width, in, out, count);
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace cframefs::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cframefs::codec {

HWY_EXPORT(vector_shuffle);
HWY_EXPORT(vector_unshuffle);
HWY_EXPORT(vector_unshuffle_planes);

namespace {

// Processes the rows from `first`, and copies the bytes after the last row.
void finish_shuffle(std::size_t width, ByteView in, ByteSpan out, std::size_t first) {
  const std::size_t items = in.size() / width;
  for (std::size_t i = first; i < items; ++i) {
    for (std::size_t j = 0; j < width; ++j)
      out[j * items + i] = in[i * width + j];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(items * width), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(items * width));
}

void finish_unshuffle(std::size_t width, ByteView in, ByteSpan out, std::size_t first) {
  const std::size_t items = in.size() / width;
  for (std::size_t i = first; i < items; ++i) {
    for (std::size_t j = 0; j < width; ++j)
      out[i * width + j] = in[j * items + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(items * width), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(items * width));
}

// As long as the longest vector of byte_transpose-inl.h.
using ConstantLine = std::array<std::uint8_t, 32>;

constexpr std::array<ConstantLine, 256> make_constant_lines() {
  std::array<ConstantLine, 256> lines{};
  for (std::size_t value = 0; value < lines.size(); ++value)
    lines[value].fill(static_cast<std::uint8_t>(value));
  return lines;
}

alignas(64) constexpr std::array<ConstantLine, 256> kConstantLines = make_constant_lines();

}  // namespace

Plane Plane::constant(std::uint8_t value) {
  return {kConstantLines[value].data(), 0};
}

void shuffle(std::size_t width, ByteView in, ByteSpan out) {
  if (width <= 1) return plain::shuffle(1, in, out);
  const std::size_t done = HWY_DYNAMIC_DISPATCH(vector_shuffle)(width, in.data(), in.size() / width, out.data());
  finish_shuffle(width, in, out, done);
}

void unshuffle(std::size_t width, ByteView in, ByteSpan out) {
  if (width <= 1) return plain::unshuffle(1, in, out);
  const std::size_t done = HWY_DYNAMIC_DISPATCH(vector_unshuffle)(width, in.data(), in.size() / width, out.data());
  finish_unshuffle(width, in, out, done);
}

void unshuffle_planes(std::span<const Plane> planes, ByteSpan out) {
  const std::size_t width = planes.size();
  const std::size_t items = out.size() / width;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(vector_unshuffle_planes)(width, planes.data(), items, out.data());
  for (std::size_t i = done; i < items; ++i) {
    for (std::size_t j = 0; j < width; ++j)
      out[i * width + j] = *planes[j].from(i);
  }
}

void unshuffle_window(std::span<const Plane> planes, std::size_t begin, ByteSpan out) {
  const std::size_t width = planes.size();
  std::size_t done = 0;
  const auto copy_until = [&](std::size_t end) {
    for (; done < end; ++done)
      out[done] = *planes[(begin + done) % width].from((begin + done) / width);
  };
  copy_until(std::min(out.size(), (width - begin % width) % width));
  const std::size_t items = (out.size() - done) / width;
  if (items > 0) {
    std::array<Plane, kMaxPlanes> rest;
    for (std::size_t j = 0; j < width; ++j)
      rest[j] = planes[j].starting_at((begin + done) / width);
    unshuffle_planes({rest.data(), width}, out.subspan(done, items * width));
    done += items * width;
  }
  copy_until(out.size());
}

void unshuffle_repeatedly(std::size_t width, std::size_t times, ByteView in, ByteSpan out) {
  const std::size_t items = in.size() / width;
  const std::size_t bytes = items * width;
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(bytes), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(bytes));
  if (bytes == 0) return;
  // A shuffle moves byte p = width * i + j to items * j + i, which is p * items modulo bytes - 1, and keeps the last
  // byte.
  // Repeated shuffles therefore are one multiplication by a power of items.
  const std::size_t last = bytes - 1;
  out[last] = in[last];
  if (last == 0) return;
  std::size_t factor = 1 % last;
  for (std::size_t i = 0; i < times; ++i)
    factor = factor * items % last;
  std::size_t from = 0;
  for (std::size_t p = 0; p < last; ++p) {
    out[p] = in[from];
    from += factor;
    if (from >= last) from -= last;
  }
}

namespace plain {
void shuffle(std::size_t width, ByteView in, ByteSpan out) {
  finish_shuffle(width, in, out, 0);
}
void unshuffle(std::size_t width, ByteView in, ByteSpan out) {
  finish_unshuffle(width, in, out, 0);
}
}  // namespace plain

}  // namespace cframefs::codec
#endif  // HWY_ONCE
