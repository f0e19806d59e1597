#include "codec/blosclz.h"

#include <algorithm>
#include <cstring>

// The two copies below move more bytes than asked for where both buffers have the room, because a copy of fixed length
// is a pair of instructions while one of exact length is a call or a loop. What is written too much lies ahead of the
// output position and is overwritten by what comes next; near the end of a buffer the copies are exact.

namespace cframefs::codec {
namespace {

constexpr std::size_t kMaxLiterals = 32;
constexpr std::size_t kWord = 16;
constexpr std::size_t kLongMatch = 128;       // where a call costs less than the loop that it saves
constexpr std::size_t kNearDistances = 8192;  // far distances start here

struct Cursor {
  const std::uint8_t* in;
  const std::uint8_t* in_end;
  std::uint8_t* out;
  std::uint8_t* out_begin;
  std::uint8_t* out_end;

  std::size_t in_left() const { return static_cast<std::size_t>(in_end - in); }
  std::size_t out_left() const { return static_cast<std::size_t>(out_end - out); }
  std::size_t produced() const { return static_cast<std::size_t>(out - out_begin); }
};

// REQUIRES: length <= kMaxLiterals, <= in_left() and <= out_left().
inline void copy_literals(Cursor& at, std::size_t length) {
  if (at.in_left() >= kMaxLiterals && at.out_left() >= kMaxLiterals) {
    std::memcpy(at.out, at.in, kMaxLiterals);
  } else {
    std::memcpy(at.out, at.in, length);
  }
  at.in += length;
  at.out += length;
}

// A match nearer than a word repeats the bytes that it is writing. After the first word, written byte by byte, the
// pattern is known, and words of it may be laid down at any multiple of the distance.
// REQUIRES: distance < kWord, out_left() >= length + kWord.
inline void repeat_pattern(std::uint8_t* out, std::size_t distance, std::size_t length) {
  const std::uint8_t* const from = out - distance;
  for (std::size_t i = 0; i < kWord; ++i)
    out[i] = from[i];
  const std::size_t step = kWord - kWord % distance;
  std::uint8_t word[kWord];
  std::memcpy(word, out, kWord);
  for (std::size_t done = step; done < length; done += step)
    std::memcpy(out + done, word, kWord);
}

// REQUIRES: distance <= produced(), length <= out_left().
inline void copy_match(Cursor& at, std::size_t distance, std::size_t length) {
  std::uint8_t* const out = at.out;
  const std::uint8_t* const from = out - distance;
  at.out += length;
  if (distance == 1) {
    std::memset(out, out[-1], length);
    return;
  }
  if (length > kLongMatch && distance >= length) {
    std::memcpy(out, from, length);
    return;
  }
  // A long match often ends the buffer: only its last bytes, where a word would not fit, are copied one by one.
  const std::size_t exact = at.out_left() >= kWord ? 0 : std::min(length, kWord - at.out_left());
  const std::size_t in_words = length - exact;
  if (distance >= kWord) {
    for (std::size_t done = 0; done < in_words; done += kWord)
      std::memcpy(out + done, from + done, kWord);
  } else if (in_words > 0) {
    repeat_pattern(out, distance, in_words);
  }
  for (std::size_t i = in_words; i < length; ++i)
    out[i] = from[i];
}

// Length and distance of the match whose control byte has been read. False: the input ends too early.
inline bool read_match(Cursor& at, std::uint8_t control, std::size_t& distance, std::size_t& length) {
  length = (control >> 5) + 2u;
  if (length == 9) {
    std::uint8_t extension = 255;
    while (extension == 255) {
      if (at.in == at.in_end) return false;
      extension = *at.in++;
      length += extension;
    }
  }
  if (at.in == at.in_end) return false;
  const std::size_t high = control & 31u;
  const std::size_t low = *at.in++;
  distance = 256 * high + low + 1;
  if (distance == kNearDistances) {
    if (at.in_left() < 2) return false;
    distance += load_be<std::uint16_t>(at.in);
    at.in += 2;
  }
  return true;
}

}  // namespace

Result<void> decode_blosclz(ByteView stream, ByteSpan out) {
  if (stream.empty()) return corrupt("blosclz: an empty stream");
  Cursor at{stream.data(), stream.data() + stream.size(), out.data(), out.data(), out.data() + out.size()};
  // The first instruction is a run of literals, whatever its upper bits say.
  std::uint8_t control = *at.in++ & 31;
  while (true) {
    if (control < 32) {
      const std::size_t length = control + std::size_t{1};
      if (length > at.in_left()) return corrupt("blosclz: ends within literals");
      if (length > at.out_left()) return corrupt("blosclz: more bytes than expected");
      copy_literals(at, length);
      if (at.in == at.in_end) break;
    } else {
      std::size_t distance = 0;
      std::size_t length = 0;
      // Nor may a match be the last instruction: the reference decoder would not carry it out.
      if (!read_match(at, control, distance, length) || at.in == at.in_end) {
        return corrupt("blosclz: ends within a match");
      }
      if (distance > at.produced()) return corrupt("blosclz: a match before the first byte");
      if (length > at.out_left()) return corrupt("blosclz: more bytes than expected");
      copy_match(at, distance, length);
    }
    control = *at.in++;
  }
  if (at.out != at.out_end) return corrupt("blosclz: fewer bytes than expected");
  return {};
}

}  // namespace cframefs::codec
