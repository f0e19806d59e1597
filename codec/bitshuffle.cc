#include "codec/bitshuffle.h"

#include <algorithm>

namespace cframefs::codec {

void bitshuffle(std::size_t width, ByteView in, ByteSpan out) {
  plain::bitshuffle(width, in, out);
}
void bitunshuffle(std::size_t width, ByteView in, ByteSpan out) {
  plain::bitunshuffle(width, in, out);
}

namespace plain {

void bitshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t items = in.size() / width / 8 * 8;
  const std::size_t row = items / 8;
  const auto whole = static_cast<std::ptrdiff_t>(items * width);
  std::fill(out.begin(), out.begin() + whole, std::uint8_t{0});
  for (std::size_t bit = 0; bit < 8 * width; ++bit) {
    for (std::size_t i = 0; i < items; ++i) {
      const unsigned value = (in[i * width + bit / 8] >> (bit % 8)) & 1u;
      out[bit * row + i / 8] |= static_cast<std::uint8_t>(value << (i % 8));
    }
  }
  std::copy(in.begin() + whole, in.end(), out.begin() + whole);
}

void bitunshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t items = in.size() / width / 8 * 8;
  const std::size_t row = items / 8;
  const auto whole = static_cast<std::ptrdiff_t>(items * width);
  std::fill(out.begin(), out.begin() + whole, std::uint8_t{0});
  for (std::size_t bit = 0; bit < 8 * width; ++bit) {
    for (std::size_t i = 0; i < items; ++i) {
      const unsigned value = (in[bit * row + i / 8] >> (i % 8)) & 1u;
      out[i * width + bit / 8] |= static_cast<std::uint8_t>(value << (bit % 8));
    }
  }
  std::copy(in.begin() + whole, in.end(), out.begin() + whole);
}

}  // namespace plain
}  // namespace cframefs::codec
