#include "codec/filter/delta.h"

#include <algorithm>

namespace cframefs::codec {
namespace {

// XORs every item of a word of 8 bytes with all lower items: a running XOR in log2(items) steps.
template <std::size_t unit>
constexpr std::uint64_t running_xor(std::uint64_t word) {
  if constexpr (unit <= 1) word ^= word << 8;
  if constexpr (unit <= 2) word ^= word << 16;
  if constexpr (unit <= 4) word ^= word << 32;
  return word;
}

// Returns the topmost item of the word at every item position.
template <std::size_t unit>
constexpr std::uint64_t spread_last(std::uint64_t word) {
  if constexpr (unit == 8) {
    return word;
  } else {
    constexpr std::uint64_t kOnes = unit == 1   ? 0x0101010101010101
                                    : unit == 2 ? 0x0001000100010001
                                                : 0x0000000100000001;
    return (word >> (64 - 8 * unit)) * kOnes;
  }
}

template <std::size_t unit>
void undo_within(ByteSpan block) {
  const std::size_t words = block.size() / 8 * 8;
  std::uint64_t last = 0;  // the last decoded item, at every item position
  for (std::size_t i = 0; i < words; i += 8) {
    const std::uint64_t word = running_xor<unit>(load_le<std::uint64_t>(&block[i]));
    store_le(&block[i], word ^ last);
    last ^= spread_last<unit>(word);
  }
  // The items after the last whole word; the item before them is decoded.
  const std::size_t items = block.size() / unit * unit;
  for (std::size_t i = words; i < items; ++i) {
    if (i >= unit) block[i] ^= block[i - unit];
  }
}

}  // namespace

std::size_t delta_unit(std::size_t typesize) {
  if (typesize == 1 || typesize == 2 || typesize == 4 || typesize == 8) return typesize;
  return typesize % 8 == 0 ? 8 : 1;
}

void delta_within(std::size_t unit, ByteView in, ByteSpan out) {
  const std::size_t first = std::min(unit, in.size());
  const std::size_t whole = std::max(in.size() / unit * unit, first);
  std::copy_n(in.begin(), first, out.begin());
  const std::uint8_t* const from = in.data();
  std::uint8_t* const to = out.data();
  for (std::size_t i = first; i < whole; ++i)
    to[i] = from[i] ^ from[i - unit];
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(), to + whole);
}

void delta_against(std::size_t unit, ByteView reference, ByteView in, ByteSpan out) {
  const std::size_t whole = in.size() / unit * unit;
  const std::uint8_t* const base = reference.data();
  const std::uint8_t* const from = in.data();
  std::uint8_t* const to = out.data();
  for (std::size_t i = 0; i < whole; ++i)
    to[i] = from[i] ^ base[i];
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(whole), in.end(), to + whole);
}

void undo_delta_within(std::size_t unit, ByteSpan block) {
  switch (unit) {
    case 1:
      return undo_within<1>(block);
    case 2:
      return undo_within<2>(block);
    case 4:
      return undo_within<4>(block);
    default:
      return undo_within<8>(block);
  }
}

void undo_delta_against(std::size_t unit, ByteView reference, ByteSpan block) {
  const std::size_t whole = block.size() / unit * unit;
  const std::uint8_t* const from = reference.data();
  std::uint8_t* const to = block.data();
  for (std::size_t i = 0; i < whole; ++i)
    to[i] ^= from[i];
}

namespace plain {

void undo_delta_within(std::size_t unit, ByteSpan block) {
  const std::size_t whole = block.size() / unit * unit;
  for (std::size_t i = unit; i < whole; ++i)
    block[i] ^= block[i - unit];
}

}  // namespace plain
}  // namespace cframefs::codec
