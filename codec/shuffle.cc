#include "codec/shuffle.h"

#include <algorithm>

namespace cframefs::codec {

void shuffle(std::size_t width, ByteView in, ByteSpan out) {
  plain::shuffle(width, in, out);
}
void unshuffle(std::size_t width, ByteView in, ByteSpan out) {
  plain::unshuffle(width, in, out);
}

namespace plain {

void shuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t items = in.size() / width;
  for (std::size_t j = 0; j < width; ++j) {
    for (std::size_t i = 0; i < items; ++i)
      out[j * items + i] = in[i * width + j];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(items * width), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(items * width));
}

void unshuffle(std::size_t width, ByteView in, ByteSpan out) {
  const std::size_t items = in.size() / width;
  for (std::size_t j = 0; j < width; ++j) {
    for (std::size_t i = 0; i < items; ++i)
      out[i * width + j] = in[j * items + i];
  }
  std::copy(in.begin() + static_cast<std::ptrdiff_t>(items * width), in.end(),
            out.begin() + static_cast<std::ptrdiff_t>(items * width));
}

}  // namespace plain
}  // namespace cframefs::codec
