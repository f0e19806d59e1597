// Vector code that converts rows of bytes to planes of bytes and back, shared by shuffle and bitshuffle.
//
// A row is an item of `width` bytes; a plane holds the byte at one position of all rows. The file is included once per
// vector instruction set, among which Highway chooses at run time; hence the unusual include guard.
//
// The building block is interleave(): n vectors are one string of blocks of 16 bytes, and one round interleaves the two
// halves of the string byte by byte. This rotates the binary position of each byte by one digit. With n = 2^k planes of
// 16 bytes, k rounds give rows; 4 rounds give planes again. All rounds work within blocks of 16 bytes, so a vector of
// 32 bytes processes two independent groups of 16 rows at once.
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

// Without vectors (HWY_SCALAR) there is nothing to include: the plain versions do all the work.
#if HWY_TARGET != HWY_SCALAR

HWY_BEFORE_NAMESPACE();
namespace cframefs::codec::HWY_NAMESPACE {

namespace hn = hwy::HWY_NAMESPACE;

// Wider vectors gain nothing: memory bandwidth is the limit, and most stores below are of 16 bytes anyway.
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

// Shuffle tables for a block of 16/n rows of n bytes each, of which only `width` are used. `pack` moves the used bytes
// to the front, `spread` moves them back; unused positions get arbitrary bytes.
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

// Loads one block from `lower` and, in vectors of 32 bytes, the next from `upper`.
template <class D>
HWY_INLINE hn::Vec<D> load_blocks(D d, const std::uint8_t* lower, const std::uint8_t* upper) {
  const Block block;
  if constexpr (kBlocks == 1) {
    return hn::LoadU(d, lower);
  } else {
    return hn::Combine(d, hn::LoadU(block, upper), hn::LoadU(block, lower));
  }
}

// Planes `stride` bytes apart.
struct EvenPlanes {
  struct Plane {
    HWY_INLINE const std::uint8_t* from(std::size_t row) const { return bytes + row; }
    const std::uint8_t* bytes;
  };
  HWY_INLINE Plane operator[](std::size_t j) const { return {planes + j * stride}; }
  const std::uint8_t* planes;
  std::size_t stride;
};

// Converts planes to rows for `width` in (n/2, n], n in {2, 4, 8, 16}; `exact`: width is n. Rows are `width` bytes
// apart.
// Returns how many rows it made, counted from the first: as many whole groups as possible without a write past the last
// of `count` rows. `planes[j].from(row)`: pointer to kGroup bytes of plane j.
template <std::size_t n, bool exact, class Planes>
HWY_INLINE std::size_t planes_to_rows(std::size_t width, const Planes& planes, std::uint8_t* HWY_RESTRICT rows,
                                      std::size_t count) {
  const Bytes d;
  if constexpr (exact) width = n;
  constexpr bool packed = !exact && n < kBlock;  // a block that holds one row needs no packing
  const RowTables tables = row_tables(n, width);
  const auto pack = hn::LoadDup128(d, tables.pack);
  // Packed blocks are stored whole; the excess lies in rows that are written later.
  const std::size_t slack = exact ? 0 : kBlock;
  // Local copies: the compiler knows that stores to the rows do not change them.
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
      // The rows of a block are contiguous, so two halves make one store.
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

// Converts rows to planes, the reverse of planes_to_rows().
template <std::size_t n, bool exact>
HWY_INLINE std::size_t rows_to_planes(std::size_t width, const std::uint8_t* HWY_RESTRICT rows,
                                      std::uint8_t* HWY_RESTRICT planes, std::size_t plane_stride, std::size_t count) {
  const Bytes d;
  if constexpr (exact) width = n;
  const RowTables tables = row_tables(n, width);
  const auto spread = hn::LoadDup128(d, tables.spread);
  // Blocks are read whole, even if the rows end before.
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

// Converts 16 planes to 16 bytes of each of kGroup rows, for rows of 16 bytes or more.
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

// Converts two groups of rows. Planes a power of two apart share one set of the L1 cache, so a cache line must be read
// whole before it is evicted.
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

// Converts rows of 16 bytes or more, 16 bytes of each row per tile. If the width is no multiple of 16, the last tile
// overlaps the one before; both write the same bytes. Both functions return how many rows they processed.
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

}  // namespace cframefs::codec::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#endif  // HWY_TARGET != HWY_SCALAR
#endif  // CFRAMEFS_CODEC_BYTE_TRANSPOSE_INL_H_
