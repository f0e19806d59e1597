// Byte strings and data for the tests of codec/.
#pragma once

#include <cstdint>
#include <random>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs {

using Bytes = std::vector<std::uint8_t>;

inline Bytes& operator+=(Bytes& bytes, const Bytes& more) {
  bytes.insert(bytes.end(), more.begin(), more.end());
  return bytes;
}

template <class T>
void append_le(Bytes& bytes, T value) {
  const std::size_t at = bytes.size();
  bytes.resize(at + sizeof value);
  codec::store_le(&bytes[at], value);
}

inline Bytes random_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes(size);
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>(random());
  return bytes;
}

/// Returns sections of noise, of one byte, of zeros and of repeats of earlier bytes, so that every kind of stream
/// occurs.
inline Bytes mixed_bytes(std::size_t size, std::uint32_t seed) {
  std::mt19937 random(seed);
  Bytes bytes;
  while (bytes.size() < size) {
    const std::size_t length = 1 + random() % (1 + random() % 3000);
    switch (random() % 4) {
      case 0:
        bytes += random_bytes(length, random());
        break;
      case 1:
        bytes.insert(bytes.end(), length, static_cast<std::uint8_t>(random()));
        break;
      case 2:
        bytes.insert(bytes.end(), length, 0);
        break;
      default: {
        const std::size_t distance = bytes.empty() ? 0 : 1 + random() % bytes.size();
        for (std::size_t i = 0; i < length && distance > 0; ++i)
          bytes.push_back(bytes[bytes.size() - distance]);
      }
    }
  }
  bytes.resize(size);
  return bytes;
}

}  // namespace cframefs
