#include "codec/stream/blosclz_encoder.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>

namespace cframefs::codec {
namespace {

constexpr std::size_t kMinPlain = 16;
constexpr std::size_t kMaxLiterals = 32;
constexpr std::ptrdiff_t kWide = kMaxLiterals;
constexpr std::size_t kFarDistance = 8192;  // a match at this distance or more takes two more bytes
constexpr std::size_t kMaxDistance = 73727;
constexpr std::size_t kNoSearch = 12;  // no match begins in this many bytes at the end
constexpr std::size_t kSamples = 4;
constexpr std::uint8_t kMarker = 1 << 5;  // set in the first byte of a stream

struct Level {
  unsigned hash_log;
  unsigned patience;        // log2 of the misses after which the step grows by one
  std::size_t near_match;   // least length of a match at a near distance
  double least_ratio;       // of all samples together
  double least_last_ratio;  // of the last sample
};

constexpr std::array<Level, 10> kLevels{{
    {12, 5, 7, 2.0, 2.0},  // clevel 0 is never encoded
    {12, 5, 7, 2.0, 2.0},
    {13, 6, 6, 1.5, 2.0},
    {13, 5, 7, 1.25, 2.5},
    {14, 6, 7, 1.2, 4.0},
    {14, 6, 7, 1.2, 4.0},
    {14, 6, 6, 1.2, 4.0},
    {14, 6, 6, 1.15, 4.0},
    {14, 7, 6, 1.1, 4.0},
    {14, 7, 5, 1.02, 4.0},
}};

std::uint32_t hash_of(std::uint32_t word, unsigned log) {
  return (word * 2654435761u) >> (32 - log);
}

// Returns how many bytes from `a`, up to `end`, equal those from `b`.
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

// Returns how many bytes before `a`, back to `first`, equal those before `b`, back to `begin`.
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

// Writes instructions. Callers check room() before each.
class Writer {
 public:
  explicit Writer(ByteSpan out) : out_(out.data()), begin_(out.data()), end_(out.data() + out.size()) {}

  // Returns true if `literals` literals and one match of `length` bytes fit.
  bool room(std::size_t literals, std::size_t length) const {
    return literals + literals / kMaxLiterals + length / 255 + 6 <= static_cast<std::size_t>(end_ - out_);
  }

  // Writes `count` literals. `end`: end of the readable bytes after `from`.
  void literals(const std::uint8_t* from, std::size_t count, const std::uint8_t* end) {
    // A copy of constant length takes few machine instructions; later output overwrites the excess.
    while (count > 0 && end - from >= kWide && end_ - out_ > kWide) {
      const std::size_t run = std::min(count, kMaxLiterals);
      *out_++ = static_cast<std::uint8_t>(run - 1);
      std::memcpy(out_, from, kMaxLiterals);
      out_ += run;
      from += run;
      count -= run;
    }
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

// Encodes `plain`; returns 0 if it does not fit into `out`. REQUIRES: plain.size() >= kMinPlain.
std::size_t encode(BlosclzTable& table, const Level& level, ByteView plain, ByteSpan out) {
  const std::uint32_t base = table.begin(plain.size());
  std::uint32_t* const slots = table.slots();
  const std::uint8_t* const begin = plain.data();
  const std::uint8_t* const end = begin + plain.size();
  const std::uint8_t* const search_end = end - kNoSearch;
  const std::uint8_t* literals = begin;  // first literal that is not written yet
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
    // A stream ends with a literal, too: a match stops before the last byte.
    std::size_t length = 4 + equal_bytes(at + 4, from + 4, end - 1);
    const std::size_t earlier = equal_bytes_before(at, from, std::max(literals, begin + 1), begin);
    length += earlier;
    if (length < level.near_match + (distance < kFarDistance ? 0 : 2)) {
      ++at;
      continue;
    }
    at -= earlier;
    const auto pending = static_cast<std::size_t>(at - literals);
    if (!writer.room(pending, length)) return 0;
    writer.literals(literals, pending, end);
    writer.match(distance, length);
    at += length;
    literals = at;
    misses = 0;
    if (at < search_end) remember(at - 2);
  }
  const auto rest = static_cast<std::size_t>(end - literals);
  if (!writer.room(rest, 0)) return 0;
  writer.literals(literals, rest, end);
  return writer.finish();
}

// Returns true if samples of the whole stream shrink enough, or the last sample shrinks much: the upper bits of a
// bitshuffled block come last and may compress even if the lower bits are noise. Overwrites `out`.
bool promising(BlosclzTable& table, const Level& level, ByteView plain, ByteSpan out) {
  const std::size_t piece = (std::size_t{1} << level.hash_log) / kSamples;
  const std::size_t stride = plain.size() / kSamples;
  if (stride < 2 * piece) return true;
  std::size_t encoded = 0;
  std::size_t last = 0;
  for (std::size_t i = 1; i <= kSamples; ++i) {
    const std::size_t length = encode(table, level, plain.subspan(i * stride - piece, piece), out);
    last = length == 0 ? piece : length;
    encoded += last;
  }
  return static_cast<double>(kSamples * piece) >= level.least_ratio * static_cast<double>(encoded) ||
         static_cast<double>(piece) >= level.least_last_ratio * static_cast<double>(last);
}

struct EncoderState final : CodecState {
  BlosclzTable table;
};

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
  if (plain.size() < kMinPlain) return 0;
  const Level& level = kLevels[static_cast<std::size_t>(clevel)];
  if (!promising(table, level, plain, out)) return 0;
  return encode(table, level, plain, out);
}

Result<std::size_t> encode_blosclz_stream(StateSlot& slot, int level, const Dictionary*, ByteView plain, ByteSpan out) {
  return encode_blosclz(state_in<EncoderState>(slot).table, level, plain, out);
}

}  // namespace cframefs::codec
