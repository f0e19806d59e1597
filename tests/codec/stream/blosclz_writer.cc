#include "tests/codec/stream/blosclz_writer.h"

#include <algorithm>
#include <stdexcept>
#include <unordered_map>

#include "codec/stream/blosclz.h"

namespace cframefs {

BlosclzWriter& BlosclzWriter::literals(const Bytes& bytes) {
  if (bytes.empty() || bytes.size() > 32) throw std::invalid_argument("a run of literals has 1 to 32 bytes");
  const std::uint8_t marker = stream_.empty() ? 0x20 : 0;
  stream_.push_back(static_cast<std::uint8_t>(marker | (bytes.size() - 1)));
  stream_ += bytes;
  plain_ += bytes;
  return *this;
}

BlosclzWriter& BlosclzWriter::match(std::size_t distance, std::size_t length) {
  if (distance < 1 || distance > 73727 || length < 3) throw std::invalid_argument("no such match");
  const bool far = distance >= 8192;
  const std::size_t code = far ? 8191 : distance - 1;
  const std::size_t field = length < 9 ? length - 2 : 7;
  stream_.push_back(static_cast<std::uint8_t>(field << 5 | code >> 8));
  if (field == 7) {
    std::size_t rest = length - 9;
    for (; rest >= 255; rest -= 255)
      stream_.push_back(255);
    stream_.push_back(static_cast<std::uint8_t>(rest));
  }
  stream_.push_back(static_cast<std::uint8_t>(code & 255));
  if (far) {
    stream_.push_back(static_cast<std::uint8_t>((distance - 8192) >> 8));
    stream_.push_back(static_cast<std::uint8_t>((distance - 8192) & 255));
  }
  for (std::size_t i = 0; i < length && distance <= plain_.size(); ++i)
    plain_.push_back(plain_[plain_.size() - distance]);
  return *this;
}

Bytes blosclz_encode(const Bytes& plain) {
  BlosclzWriter writer;
  std::unordered_map<std::uint32_t, std::size_t> seen;
  std::size_t pending = 0;  // first byte that is not written yet
  const auto flush = [&](std::size_t end) {
    for (; pending < end; pending = std::min(end, pending + 32)) {
      writer.literals(Bytes(plain.begin() + static_cast<std::ptrdiff_t>(pending),
                            plain.begin() + static_cast<std::ptrdiff_t>(std::min(end, pending + 32))));
    }
  };
  for (std::size_t at = 0; at + 5 <= plain.size();) {
    const auto word = codec::load_le<std::uint32_t>(&plain[at]);
    const auto found = seen.find(word);
    const std::size_t before = found == seen.end() ? at : found->second;
    seen[word] = at;
    const std::size_t distance = at - before;
    if (distance == 0 || distance > 73727) {
      ++at;
      continue;
    }
    std::size_t length = 4;
    while (at + length + 1 < plain.size() && plain[at + length] == plain[before + length])
      ++length;
    flush(at);
    writer.match(distance, length);
    at += length;
    pending = at;
  }
  flush(plain.size());
  return writer.stream();
}

bool decodes_to(const Bytes& stream, const Bytes& plain) {
  Bytes out(plain.size(), 0xa5);
  return codec::decode_blosclz(stream, out).has_value() && out == plain;
}

}  // namespace cframefs
