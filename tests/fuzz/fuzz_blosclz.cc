// The BloscLZ decoder against one that does what codecs.md says, byte by byte. Input: output length (2 bytes), stream.
#include <cstdint>
#include <optional>
#include <vector>

#include "codec/stream/blosclz.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using cframefs::codec::ByteView;

std::optional<std::vector<std::uint8_t>> decode_slowly(ByteView in, std::size_t expected) {
  std::vector<std::uint8_t> out;
  std::size_t at = 0;
  bool first = true;
  bool literals_last = false;
  while (at < in.size()) {
    const std::size_t control = first ? in[at] & 31u : in[at];
    first = false;
    ++at;
    literals_last = control < 32;
    if (literals_last) {
      for (std::size_t i = 0; i <= control; ++i, ++at) {
        if (at == in.size()) return std::nullopt;
        out.push_back(in[at]);
      }
    } else {
      std::size_t length = control / 32 + 2;
      for (bool more = length == 9; more; ++at) {
        if (at == in.size()) return std::nullopt;
        length += in[at];
        more = in[at] == 255;
      }
      if (at == in.size()) return std::nullopt;
      std::size_t distance = 256 * (control % 32) + in[at++] + 1;
      if (distance == 8192) {
        if (in.size() - at < 2) return std::nullopt;
        distance += 256 * in[at] + in[at + 1];
        at += 2;
      }
      if (distance > out.size() || length > expected - out.size()) return std::nullopt;
      for (std::size_t i = 0; i < length; ++i)
        out.push_back(out[out.size() - distance]);
    }
    if (out.size() > expected) return std::nullopt;
  }
  if (!literals_last || out.size() != expected) return std::nullopt;
  return out;
}

}  // namespace

FUZZ_TARGET(blosclz)(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::size_t expected = data[0] + 256u * data[1];
  const std::vector<std::uint8_t> stream(data + 2, data + size);
  std::vector<std::uint8_t> out(expected);
  const bool decoded = cframefs::codec::decode_blosclz(stream, out).has_value();
  const auto slowly = decode_slowly(stream, expected);
  FUZZ_CHECK(decoded == slowly.has_value());
  if (decoded) FUZZ_CHECK(out == *slowly);
  return 0;
}
