#include "codec/filter/bitshuffle.h"

#include <algorithm>

// Scalable vectors cannot be stored in arrays; machines that have them use vectors of fixed length.
#define HWY_DISABLED_TARGETS (HWY_SVE | HWY_SVE2 | HWY_SVE_256 | HWY_SVE2_128 | HWY_RVV)
#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "codec/filter/bitshuffle.cc"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "codec/filter/byte_transpose-inl.h"

// Eight items form one row of 8 * width bytes. A byte shuffle of the rows gives eight planes for byte j of the items;
// transposing the bits of these eight planes gives the eight bit rows of byte j. Both directions therefore combine a
// byte shuffle of rows with a bit transposition of eight vectors. They process a few rows at a time, so that the planes
// stay in the L1 cache.

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec::HWY_NAMESPACE {

// The vector_ functions return how many rows of eight items they processed, counted from the first.
#if HWY_TARGET == HWY_SCALAR

std::size_t vector_bitunshuffle(std::size_t, const std::uint8_t*, std::size_t, std::uint8_t*) {
  return 0;
}
std::size_t vector_bitshuffle(std::size_t, const std::uint8_t*, std::size_t, std::uint8_t*) {
  return 0;
}

#else

constexpr std::size_t kRows = 64;      // rows of eight items per step: one cache line of each bit row
constexpr std::size_t kMaxWidth = 16;  // bytes of an item per step

// Exchanges the upper bits of `low` with the lower bits of `high`, which are `shift` bits apart. `mask`: the lower
// bits.
template <int shift>
HWY_INLINE void exchange(std::uint8_t mask, Vector& low, Vector& high) {
  const Bytes d;
  const hn::Repartition<std::uint16_t, Bytes> d16;
  const Vector shifted = hn::BitCast(d, hn::ShiftRight<shift>(hn::BitCast(d16, low)));
  const Vector changed = hn::And(hn::Xor(shifted, high), hn::Set(d, mask));
  high = hn::Xor(high, changed);
  low = hn::Xor(low, hn::BitCast(d, hn::ShiftLeft<shift>(hn::BitCast(d16, changed))));
}

// Moves bit i of vector k to bit k of vector i, in every byte. Self-inverse.
HWY_INLINE void transpose_bits(Vector (&v)[8]) {
  for (std::size_t k = 0; k < 4; ++k)
    exchange<4>(0x0f, v[k], v[k + 4]);
  for (const std::size_t k : {0, 1, 4, 5})
    exchange<2>(0x33, v[k], v[k + 2]);
  for (const std::size_t k : {0, 2, 4, 6})
    exchange<1>(0x55, v[k], v[k + 1]);
}

// Transposes the bits of eight lines of kRows bytes each.
HWY_INLINE void transpose_lines(const std::uint8_t* HWY_RESTRICT in, std::size_t in_stride,
                                std::uint8_t* HWY_RESTRICT out, std::size_t out_stride) {
  const Bytes d;
  for (std::size_t at = 0; at < kRows; at += kGroup) {
    Vector v[8];
    for (std::size_t k = 0; k < 8; ++k)
      v[k] = hn::LoadU(d, in + k * in_stride + at);
    transpose_bits(v);
    for (std::size_t i = 0; i < 8; ++i)
      hn::StoreU(v[i], d, out + i * out_stride + at);
  }
}

// Makes kRows rows of items of up to 16 bytes. `bits`: bit rows, `stride` bytes apart.
void narrow_bits_to_rows(std::size_t width, const std::uint8_t* bits, std::size_t stride, std::uint8_t* rows) {
  alignas(64) std::uint8_t planes[8 * kMaxWidth * kRows];
  for (std::size_t j = 0; j < width; ++j) {
    transpose_lines(bits + 8 * j * stride, stride, planes + j * kRows, width * kRows);
  }
  if (width == 1) {
    planes_to_rows<8, true>(8, EvenPlanes{planes, kRows}, rows, kRows);
  } else {
    wide_planes_to_rows(8 * width, planes, kRows, rows, kRows);
  }
}

void narrow_rows_to_bits(std::size_t width, const std::uint8_t* rows, std::uint8_t* bits, std::size_t stride) {
  alignas(64) std::uint8_t planes[8 * kMaxWidth * kRows];
  if (width == 1) {
    rows_to_planes<8, true>(8, rows, planes, kRows, kRows);
  } else {
    wide_rows_to_planes(8 * width, rows, planes, kRows, kRows);
  }
  for (std::size_t j = 0; j < width; ++j) {
    transpose_lines(planes + j * kRows, width * kRows, bits + 8 * j * stride, stride);
  }
}

// Makes kRows rows of items of more than 16 bytes, 16 bytes of each item per step. If the width is no multiple of 16,
// the last step overlaps the one before; both write the same bytes.
void wide_bits_to_rows(std::size_t width, const std::uint8_t* bits, std::size_t stride, std::uint8_t* rows) {
  alignas(64) std::uint8_t planes[8 * kMaxWidth * kRows];
  for (std::size_t part = 0; part < width; part += kMaxWidth) {
    const std::size_t from = std::min(part, width - kMaxWidth);
    for (std::size_t j = 0; j < kMaxWidth; ++j) {
      transpose_lines(bits + 8 * (from + j) * stride, stride, planes + j * kRows, kMaxWidth * kRows);
    }
    for (std::size_t item = 0; item < 8; ++item) {
      for (std::size_t at = 0; at < kRows; at += kGroup) {
        tile_to_rows(planes + item * kMaxWidth * kRows + at, kRows, rows + (8 * at + item) * width + from, 8 * width);
      }
    }
  }
}

void wide_rows_to_bits(std::size_t width, const std::uint8_t* rows, std::uint8_t* bits, std::size_t stride) {
  alignas(64) std::uint8_t planes[8 * kMaxWidth * kRows];
  for (std::size_t part = 0; part < width; part += kMaxWidth) {
    const std::size_t from = std::min(part, width - kMaxWidth);
    for (std::size_t item = 0; item < 8; ++item) {
      for (std::size_t at = 0; at < kRows; at += kGroup) {
        tile_to_planes(rows + (8 * at + item) * width + from, 8 * width, planes + item * kMaxWidth * kRows + at, kRows);
      }
    }
    for (std::size_t j = 0; j < kMaxWidth; ++j) {
      transpose_lines(planes + j * kRows, kMaxWidth * kRows, bits + 8 * (from + j) * stride, stride);
    }
  }
}

std::size_t vector_bitunshuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  const std::size_t whole = count / kRows * kRows;
  for (std::size_t i = 0; i < whole; i += kRows) {
    if (width <= kMaxWidth) {
      narrow_bits_to_rows(width, in + i, count, out + i * 8 * width);
    } else {
      wide_bits_to_rows(width, in + i, count, out + i * 8 * width);
    }
  }
  return whole;
}

std::size_t vector_bitshuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out) {
  const std::size_t whole = count / kRows * kRows;
  for (std::size_t i = 0; i < whole; i += kRows) {
    if (width <= kMaxWidth) {
      narrow_rows_to_bits(width, in + i * 8 * width, out + i, count);
    } else {
      wide_rows_to_bits(width, in + i * 8 * width, out + i, count);
    }
  }
  return whole;
}

#endif  // HWY_TARGET == HWY_SCALAR

}  // namespace cframefs::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace cframefs::codec {

HWY_EXPORT(vector_bitshuffle);
HWY_EXPORT(vector_bitunshuffle);

namespace {

// Moves bit i of byte k to bit k of byte i.
constexpr std::uint64_t transpose_word(std::uint64_t word) {
  std::uint64_t changed = (word ^ (word >> 28)) & 0x00000000f0f0f0f0;
  word ^= changed ^ (changed << 28);
  changed = (word ^ (word >> 14)) & 0x0000cccc0000cccc;
  word ^= changed ^ (changed << 14);
  changed = (word ^ (word >> 7)) & 0x00aa00aa00aa00aa;
  return word ^ changed ^ (changed << 7);
}

// Processes the rows of eight items from `first`.
void finish_bitshuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out,
                       std::size_t first) {
  for (std::size_t i = first; i < count; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      std::uint64_t word = 0;
      for (std::size_t k = 0; k < 8; ++k)
        word |= std::uint64_t{in[(8 * i + k) * width + j]} << (8 * k);
      word = transpose_word(word);
      for (std::size_t k = 0; k < 8; ++k)
        out[(8 * j + k) * count + i] = static_cast<std::uint8_t>(word >> (8 * k));
    }
  }
}

void finish_bitunshuffle(std::size_t width, const std::uint8_t* in, std::size_t count, std::uint8_t* out,
                         std::size_t first) {
  for (std::size_t i = first; i < count; ++i) {
    for (std::size_t j = 0; j < width; ++j) {
      std::uint64_t word = 0;
      for (std::size_t k = 0; k < 8; ++k)
        word |= std::uint64_t{in[(8 * j + k) * count + i]} << (8 * k);
      word = transpose_word(word);
      for (std::size_t k = 0; k < 8; ++k)
        out[(8 * i + k) * width + j] = static_cast<std::uint8_t>(word >> (8 * k));
    }
  }
}

// Copies the bytes after the last row.
void copy_rest(std::size_t width, std::size_t count, ByteView in, ByteSpan out) {
  const auto done = static_cast<std::ptrdiff_t>(8 * width * count);
  std::copy(in.begin() + done, in.end(), out.begin() + done);
}

}  // namespace

void bitshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t count = in.size() / width / 8;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(vector_bitshuffle)(width, in.data(), count, out.data());
  finish_bitshuffle(width, in.data(), count, out.data(), done);
  copy_rest(width, count, in, out);
}

void bitunshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t count = in.size() / width / 8;
  const std::size_t done = HWY_DYNAMIC_DISPATCH(vector_bitunshuffle)(width, in.data(), count, out.data());
  finish_bitunshuffle(width, in.data(), count, out.data(), done);
  copy_rest(width, count, in, out);
}

namespace plain {

void bitshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t count = in.size() / width / 8;
  for (std::size_t bit = 0; bit < 8 * width; ++bit) {
    for (std::size_t i = 0; i < count; ++i) {
      unsigned byte = 0;
      for (std::size_t k = 0; k < 8; ++k)
        byte |= ((in[(8 * i + k) * width + bit / 8] >> (bit % 8)) & 1u) << k;
      out[bit * count + i] = static_cast<std::uint8_t>(byte);
    }
  }
  copy_rest(width, count, in, out);
}

void bitunshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t count = in.size() / width / 8;
  for (std::size_t item = 0; item < 8 * count; ++item) {
    for (std::size_t j = 0; j < width; ++j) {
      unsigned byte = 0;
      for (std::size_t k = 0; k < 8; ++k)
        byte |= ((in[(8 * j + k) * count + item / 8] >> (item % 8)) & 1u) << k;
      out[item * width + j] = static_cast<std::uint8_t>(byte);
    }
  }
  copy_rest(width, count, in, out);
}

}  // namespace plain
}  // namespace cframefs::codec
#endif  // HWY_ONCE
