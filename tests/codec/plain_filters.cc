#include "tests/codec/plain_filters.h"

namespace cframefs {

Bytes apply_shuffle(std::size_t width, const Bytes& block) {
  Bytes out = block;
  const std::size_t items = block.size() / width;
  for (std::size_t i = 0; i < items * width; ++i)
    out[i % width * items + i / width] = block[i];
  return out;
}

Bytes apply_bitshuffle(std::size_t width, bool old_layout, const Bytes& block) {
  const std::size_t items = block.size() / width;
  if (old_layout && items % 8 != 0) return block;
  Bytes out = block;
  const std::size_t whole = items / 8 * 8;
  for (std::size_t i = 0; i < whole * width; ++i)
    out[i] = 0;
  for (std::size_t i = 0; i < whole; ++i) {
    for (std::size_t bit = 0; bit < 8 * width; ++bit) {
      if (block[i * width + bit / 8] >> (bit % 8) & 1) {
        out[bit * (whole / 8) + i / 8] |= static_cast<std::uint8_t>(1u << (i % 8));
      }
    }
  }
  return out;
}

Bytes apply_delta(std::size_t typesize, const Bytes& reference, const Bytes& block) {
  const bool power = typesize == 1 || typesize == 2 || typesize == 4 || typesize == 8;
  const std::size_t unit = power ? typesize : typesize % 8 == 0 ? 8 : 1;
  Bytes out = block;
  for (std::size_t i = 0; i < block.size() / unit * unit; ++i) {
    if (!reference.empty()) {
      out[i] ^= reference[i];
    } else if (i >= unit) {
      out[i] ^= block[i - unit];
    }
  }
  return out;
}

Bytes apply_bytedelta(std::size_t planes, bool restarted, const Bytes& block) {
  Bytes out = block;
  const std::size_t length = block.size() / planes;
  for (std::size_t plane = 0; plane < planes; ++plane) {
    for (std::size_t i = 1; i < length; ++i) {
      if (restarted && i == length / 16 * 16) continue;
      const std::size_t at = plane * length + i;
      out[at] = static_cast<std::uint8_t>(block[at] - block[at - 1]);
    }
  }
  return out;
}

}  // namespace cframefs
