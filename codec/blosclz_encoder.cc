#include "codec/blosclz_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace cframefs::codec {
namespace {

constexpr std::size_t kLeastPlain = 16;
constexpr std::size_t kMaxLiterals = 32;
constexpr std::size_t kFarDistance = 8192;  // from here on a match takes two bytes more
constexpr std::size_t kMaxDistance = 73727;
constexpr std::size_t kNearMatch = 5;  // shortest that is worth it
constexpr std::size_t kFarMatch = 7;
constexpr std::size_t kNoSearch = 12;     // at the end, where no match begins
constexpr std::uint8_t kMarker = 1 << 5;  // on the first byte of a stream

struct Level {
  unsigned hash_log;
  unsigned patience;   // log2 of how many misses it takes to lengthen the step by one
  std::size_t part;    // 1/part of the stream, its end, is tried first
  double least_ratio;  // that it has to have
};

constexpr std::array<Level, 10> kLevels{{
    {12, 5, 8, 2.0},  // 0 is never encoded
    {12, 5, 8, 2.0},
    {13, 6, 4, 1.5},
    {14, 6, 4, 1.2},
    {14, 6, 2, 1.2},
    {14, 7, 2, 1.2},
    {14, 7, 2, 1.2},
    {14, 8, 1, 1.15},
    {14, 8, 1, 1.1},
    {14, 9, 1, 1.0},
}};

std::uint32_t hash_of(std::uint32_t word, unsigned log) {
  return (word * 2654435761u) >> (32 - log);
}

// How many bytes from `a` on, and before `end`, are those from `b` on.
std::size_t equal_bytes(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* end) {
  const std::uint8_t* const begin = a;
  while (end - a >= 8) {
    const std::uint64_t difference = load_le<std::uint64_t>(a) ^ load_le<std::uint64_t>(b);
    if (difference != 0)
      return static_cast<std::size_t>(a - begin) + static_cast<std::size_t>(std::countr_zero(difference)) / 8;
    a += 8;
    b += 8;
  }
  while (a < end && *a == *b) {
    ++a;
    ++b;
  }
  return static_cast<std::size_t>(a - begin);
}

// How many bytes before `a`, from `first` on, are those before `b`, from `begin` on.
std::size_t equal_bytes_before(const std::uint8_t* a, const std::uint8_t* b, const std::uint8_t* first,
                               const std::uint8_t* begin) {
  std::size_t count = 0;
  while (a > first && b > begin && a[-1] == b[-1]) {
    --a;
    --b;
    ++count;
  }
  return count;
}

// Writes instructions; room() is to be asked before.
class Writer {
 public:
  explicit Writer(ByteSpan out) : out_(out.data()), begin_(out.data()), end_(out.data() + out.size()) {}

  // Whether so many literals and one match of `length` bytes fit.
  bool room(std::size_t literals, std::size_t length) const {
    return literals + literals / kMaxLiterals + length / 255 + 6 <= static_cast<std::size_t>(end_ - out_);
  }

  void literals(const std::uint8_t* from, std::size_t count) {
    while (count > 0) {
      const std::size_t run = std::min(count, kMaxLiterals);
      *out_++ = static_cast<std::uint8_t>(run - 1);
      std::memcpy(out_, from, run);
      out_ += run;
      from += run;
      count -= run;
    }
  }

  void match(std::size_t distance, std::size_t length) {
    const bool far = distance >= kFarDistance;
    const std::size_t code = far ? 31 * 256 + 255 : distance - 1;
    const std::size_t field = std::min<std::size_t>(length - 2, 7);
    *out_++ = static_cast<std::uint8_t>(field << 5 | code >> 8);
    if (field == 7) {
      std::size_t left = length - 9;
      for (; left >= 255; left -= 255)
        *out_++ = 255;
      *out_++ = static_cast<std::uint8_t>(left);
    }
    *out_++ = static_cast<std::uint8_t>(code);
    if (far) {
      const std::size_t beyond = distance - kFarDistance;
      *out_++ = static_cast<std::uint8_t>(beyond >> 8);
      *out_++ = static_cast<std::uint8_t>(beyond);
    }
  }

  std::size_t finish() {
    *begin_ |= kMarker;
    return static_cast<std::size_t>(out_ - begin_);
  }

 private:
  std::uint8_t* out_;
  std::uint8_t* const begin_;
  std::uint8_t* const end_;
};

// REQUIRES: plain.size() >= kLeastPlain.
std::size_t encode(BlosclzTable& table, const Level& level, ByteView plain, ByteSpan out) {
  const std::uint32_t base = table.begin(plain.size());
  std::uint32_t* const slots = table.slots();
  const std::uint8_t* const begin = plain.data();
  const std::uint8_t* const end = begin + plain.size();
  const std::uint8_t* const search_end = end - kNoSearch;
  const std::uint8_t* literals = begin;  // those not written yet
  const std::uint8_t* at = begin + 1;    // a stream begins with a literal
  std::size_t misses = 0;
  Writer writer(out);
  const auto remember = [&](const std::uint8_t* place) {
    slots[hash_of(load_le<std::uint32_t>(place), level.hash_log)] = base + static_cast<std::uint32_t>(place - begin);
  };
  remember(begin);
  while (at < search_end) {
    const auto word = load_le<std::uint32_t>(at);
    std::uint32_t& slot = slots[hash_of(word, level.hash_log)];
    const std::uint32_t seen = slot;
    slot = base + static_cast<std::uint32_t>(at - begin);
    const std::uint8_t* const from = begin + (seen - base);
    if (seen < base || static_cast<std::size_t>(at - from) > kMaxDistance || load_le<std::uint32_t>(from) != word) {
      at += 1 + (misses++ >> level.patience);
      continue;
    }
    const auto distance = static_cast<std::size_t>(at - from);
    // ... and ends with one.
    std::size_t length = 4 + equal_bytes(at + 4, from + 4, end - 1);
    const std::size_t earlier = equal_bytes_before(at, from, std::max(literals, begin + 1), begin);
    length += earlier;
    if (length < (distance < kFarDistance ? kNearMatch : kFarMatch)) {
      ++at;
      continue;
    }
    at -= earlier;
    const auto pending = static_cast<std::size_t>(at - literals);
    if (!writer.room(pending, length)) return 0;
    writer.literals(literals, pending);
    writer.match(distance, length);
    at += length;
    literals = at;
    misses = 0;
    if (at < search_end) remember(at - 2);
  }
  const auto rest = static_cast<std::size_t>(end - literals);
  if (!writer.room(rest, 0)) return 0;
  writer.literals(literals, rest);
  return writer.finish();
}

}  // namespace

std::uint32_t BlosclzTable::begin(std::size_t length) {
  if (slots_.empty() || length >= std::numeric_limits<std::uint32_t>::max() - next_) {
    slots_.assign(std::size_t{1} << kLog, 0);
    next_ = 1;
  }
  const std::uint32_t base = next_;
  next_ += static_cast<std::uint32_t>(length);
  return base;
}

std::size_t encode_blosclz(BlosclzTable& table, int clevel, ByteView plain, ByteSpan out) {
  if (plain.size() < kLeastPlain) return 0;
  const Level& level = kLevels[static_cast<std::size_t>(clevel)];
  const std::size_t sample = std::min(plain.size() / level.part, std::size_t{1} << level.hash_log);
  const auto enough = [&](std::size_t length, std::size_t encoded) {
    return encoded != 0 && static_cast<double>(length) >= level.least_ratio * static_cast<double>(encoded);
  };
  if (sample >= kLeastPlain && sample < plain.size() && level.least_ratio > 1 &&
      !enough(sample, encode(table, level, plain.last(sample), out))) {
    return 0;
  }
  return encode(table, level, plain, out);
}

}  // namespace cframefs::codec
