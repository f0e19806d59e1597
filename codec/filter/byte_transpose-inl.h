// Rows of bytes into planes of bytes and back, with vectors: the work that shuffle and bitshuffle share.
//
// A row is an item of `width` bytes, a plane holds the byte at one place of all rows. Included once per vector
// instruction set (Highway's way of choosing when the program runs), hence the odd include guard.
//
// The one building block is interleave(): n vectors in a row are seen as one string of blocks of 16 bytes, and one
// round deals the two halves of the string out byte by byte. A byte's place in the string, written in binary, is
// thereby rotated by one digit. With n = 2^k planes of 16 bytes, k rounds give rows; 4 rounds give planes again. All
// works within blocks of 16 bytes, so a vector of 32 bytes does the same for two independent groups of 16 rows at once.
//
// Units: bytes. Thread safety: pure functions.
#if defined(CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_) == defined(HWY_TARGET_TOGGLE)
#ifdef CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_
#undef CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_
#else
#define CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_
#endif

#include <cstddef>
#include <cstdint>

#include <hwy/highway.h>

// Where Highway has no vectors there is nothing to include: the plain versions do everything.
#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec {
namespace HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Wider vectors gain nothing: memory is the limit, and most of the stores below go by blocks anyway.
using Bytes = hn::CappedTag<std::uint8_t, 32>;
using Block = hn::FixedTag<std::uint8_t, 16>;
using Vector = hn::Vec<Bytes>;

constexpr std::size_t kBlock = 16;                             // rows per block
constexpr std::size_t kGroup = HWY_MAX_BYTES >= 32 ? 32 : 16;  // rows per vector
constexpr std::size_t kBlocks = kGroup / kBlock;

template <std::size_t rounds, std::size_t n>
HWY_INLINE void interleave(Vector (&v)[n]) {
  if constexpr (rounds > 0) {
    const Bytes d;
    Vector dealt[n];
    for (std::size_t i = 0; i < n / 2; ++i) {
      dealt[2 * i] = hn::InterleaveLower(d, v[i], v[i + n / 2]);
      dealt[2 * i + 1] = hn::InterleaveUpper(d, v[i], v[i + n / 2]);
    }
    for (std::size_t i = 0; i < n; ++i)
      v[i] = dealt[i];
    interleave<rounds - 1>(v);
  }
}

constexpr std::size_t log2_of(std::size_t n) {
  return n <= 1 ? 0 : 1 + log2_of(n / 2);
}

// Where the bytes of a block of 16/n rows of n places each go, if a row has only `width` bytes: packed to the front.
// And the other way round, spread from there. Places without a byte get any.
struct RowTables {
  alignas(16) std::uint8_t pack[kBlock] = {};
  alignas(16) std::uint8_t spread[kBlock] = {};
};

inline RowTables row_tables(std::size_t n, std::size_t width) {
  RowTables tables;
  for (std::size_t place = 0; place < kBlock; ++place) {
    if (place / width < kBlock / n) {
      tables.pack[place] = static_cast<std::uint8_t>(place / width * n + place % width);
    }
    if (place % n < width) {
      tables.spread[place] = static_cast<std::uint8_t>(place / n * width + place % n);
    }
  }
  return tables;
}

template <class V>
HWY_INLINE void store_block(V v, std::size_t block, std::uint8_t* to) {
  const Block d;
  if constexpr (kBlocks == 1) {
    hn::StoreU(v, d, to);
  } else if (block == 0) {
    hn::StoreU(hn::LowerHalf(d, v), d, to);
  } else {
    hn::StoreU(hn::UpperHalf(d, v), d, to);
  }
}

// One block from `lower`, the next (in vectors that have one) from `upper`.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::uint8_t* lower, const std::uint8_t* upper) {
  const Block block;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, lower);
  } else {
    return hn::Combine(d, hn::LoadU(block, upper), hn::LoadU(block, lower));
  }
}

// Planes of which each begins where the one before ends, `stride` bytes further.
struct EvenPlanes {
  struct Plane {
    HWY_INLINE const std::uint8_t* from(std::size_t row) const { return bytes + row; }
    const std::uint8_t* bytes;
  };
  HWY_INLINE Plane operator[](std::size_t j) const { return {planes + j * stride}; }
  const std::uint8_t* planes;
  std::size_t stride;
};

// Planes to rows for `width` in (n/2, n], n in {2, 4, 8, 16}; `exact`: width is n. Rows lie `width` bytes apart.
// Returns how many rows were made, from the first on: as many whole groups as can be while nothing is written past the
// last of `count` rows. `planes[j].from(row)`: where kGroup bytes of plane j are.
template <std::size_t n, bool exact, class Planes>
HWY_INLINE std::size_t planes_to_rows(std::size_t width, const Planes& planes, std::uint8_t* HWY_RESTRICT rows,
                                      std::size_t count) {
  const Bytes d;
  if constexpr (exact) width = n;
  constexpr bool packed = !exact && n < kBlock;  // a block of one row needs no packing
  const RowTables tables = row_tables(n, width);
  const auto pack = hn::LoadDup128(d, tables.pack);
  // Packed blocks are stored whole; what they write too much is the place of the rows that follow.
  const std::size_t slack = exact ? 0 : kBlock;
  // Copies, which no store to the rows can change.
  decltype(planes[0]) plane[n];
  for (std::size_t j = 0; j < n; ++j)
    plane[j] = planes[exact || j < width ? j : 0];
  std::size_t done = 0;
  for (; count - done >= kGroup && (count - done - kGroup) * width >= slack; done += kGroup) {
    Vector v[n];
    for (std::size_t j = 0; j < n; ++j)
      v[j] = hn::LoadU(d, plane[j].from(done));
    interleave<log2_of(n)>(v);
    for (std::size_t i = 0; i < n && packed; ++i)
      v[i] = hn::TableLookupBytes(v[i], pack);
    if constexpr (exact && kBlocks == 2) {
      // All rows of a block lie together, so that two halves make one store.
      std::uint8_t* const to = rows + done * width;
      for (std::size_t i = 0; i < n; i += 2) {
        hn::StoreU(hn::ConcatLowerLower(d, v[i + 1], v[i]), d, to + i * kBlock);
        hn::StoreU(hn::ConcatUpperUpper(d, v[i + 1], v[i]), d, to + (n + i) * kBlock);
      }
      continue;
    }
    for (std::size_t block = 0; block < kBlocks; ++block) {
      std::uint8_t* const to = rows + (done + block * kBlock) * width;
      for (std::size_t i = 0; i < n; ++i)
        store_block(v[i], block, to + i * (kBlock / n) * width);
    }
  }
  return done;
}

// The reverse: rows to planes.
template <std::size_t n, bool exact>
HWY_INLINE std::size_t rows_to_planes(std::size_t width, const std::uint8_t* HWY_RESTRICT rows,
                                      std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride, std::size_t count) {
  const Bytes d;
  if constexpr (exact) width = n;
  const RowTables tables = row_tables(n, width);
  const auto spread = hn::LoadDup128(d, tables.spread);
  // Blocks are read whole, even where the rows that are wanted end before.
  const std::size_t slack = exact ? 0 : kBlock;
  std::size_t done = 0;
  for (; count - done >= kGroup && (count - done - kGroup) * width >= slack; done += kGroup) {
    Vector v[n];
    for (std::size_t i = 0; i < n; ++i) {
      const std::uint8_t* const from = rows + (done + i * (kBlock / n)) * width;
      v[i] = load_blocks(d, from, from + kBlock * width);
      if constexpr (!exact && n < kBlock) v[i] = hn::TableLookupBytes(v[i], spread);
    }
    interleave<4>(v);
    for (std::size_t j = 0; j < n; ++j) {
      if (exact || j < width) hn::StoreU(v[j], d, planes + j * plane_stride + done);
    }
  }
  return done;
}

// Sixteen planes to sixteen bytes of each of kGroup rows, for rows of any width from 16 on.
HWY_INLINE void tile_to_rows(const std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride,
                             std::uint8_t* HWY_RESTRICT rows, std::size_t row_stride) {
  Vector v[16];
  for (std::size_t j = 0; j < 16; ++j)
    v[j] = hn::LoadU(Bytes(), planes + j * plane_stride);
  interleave<4>(v);
  for (std::size_t block = 0; block < kBlocks; ++block) {
    for (std::size_t i = 0; i < 16; ++i)
      store_block(v[i], block, rows + (block * kBlock + i) * row_stride);
  }
}

// Two groups of rows. Planes that lie a power of two apart share one place in the first cache: what is not read of a
// line at once has to be fetched again.
HWY_INLINE void tiles_to_rows(const std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride,
                              std::uint8_t* HWY_RESTRICT rows, std::size_t row_stride) {
  alignas(64) std::uint8_t lines[16 * 2 * kGroup];
  const Bytes d;
  for (std::size_t j = 0; j < 16; ++j) {
    hn::Store(hn::LoadU(d, planes + j * plane_stride), d, lines + 2 * j * kGroup);
    hn::Store(hn::LoadU(d, planes + j * plane_stride + kGroup), d, lines + (2 * j + 1) * kGroup);
  }
  tile_to_rows(lines, 2 * kGroup, rows, row_stride);
  tile_to_rows(lines + kGroup, 2 * kGroup, rows + kGroup * row_stride, row_stride);
}

HWY_INLINE void tile_to_planes(const std::uint8_t* HWY_RESTRICT rows, std::size_t row_stride,
                               std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride) {
  Vector v[16];
  for (std::size_t i = 0; i < 16; ++i)
    v[i] = load_blocks(Bytes(), rows + i * row_stride, rows + (kBlock + i) * row_stride);
  interleave<4>(v);
  for (std::size_t j = 0; j < 16; ++j)
    hn::StoreU(v[j], Bytes(), planes + j * plane_stride);
}

// Rows wider than a block, 16 bytes of them at a time. The last tile overlaps the one before where the width is no
// multiple of 16; what both write is the same. These two, too, return how many rows they did.
HWY_INLINE std::size_t wide_planes_to_rows(std::size_t width, const std::uint8_t* HWY_RESTRICT planes,
                                           std::size_t plane_stride, std::uint8_t* HWY_RESTRICT rows,
                                           std::size_t count) {
  const std::size_t whole = count / kGroup * kGroup;
  for (std::size_t i = 0; i < whole; i += 2 * kGroup) {
    for (std::size_t j = 0; j < width; j += kBlock) {
      const std::size_t from = j + kBlock <= width ? j : width - kBlock;
      const std::uint8_t* const tile = planes + from * plane_stride + i;
      if (i + kGroup < whole) {
        tiles_to_rows(tile, plane_stride, rows + i * width + from, width);
      } else {
        tile_to_rows(tile, plane_stride, rows + i * width + from, width);
      }
    }
  }
  return whole;
}

HWY_INLINE std::size_t wide_rows_to_planes(std::size_t width, const std::uint8_t* HWY_RESTRICT rows,
                                           std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride,
                                           std::size_t count) {
  const std::size_t whole = count / kGroup * kGroup;
  for (std::size_t i = 0; i < whole; i += kGroup) {
    for (std::size_t j = 0; j < width; j += kBlock) {
      const std::size_t from = j + kBlock <= width ? j : width - kBlock;
      tile_to_planes(rows + i * width + from, width, planes + from * plane_stride + i, plane_stride);
    }
  }
  return whole;
}

}  // namespace HWY_NAMESPACE
}  // namespace cframefs::codec
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR
#endif  // CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_
