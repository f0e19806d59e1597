#include "codec/blosclz.h"

#include <algorithm>
#include <cstring>

// The copies below move more bytes than asked for where both buffers have the room, because a copy of fixed length is a
// pair of instructions while one of exact length is a call or a loop. What is written too much lies ahead of the output
// position and is overwritten by what comes next; near the end of a buffer the copies are exact.

namespace cframefs::codec {
namespace {

constexpr std::size_t kMaxLiterals = 32;
constexpr std::size_t kWord = 16;
constexpr std::size_t kHalf = 8;
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
  if (at.in_left() < kMaxLiterals || at.out_left() < kMaxLiterals) {
    std::memcpy(at.out, at.in, length);
  } else if (length <= kHalf) {
    std::memcpy(at.out, at.in, kHalf);
  } else {
    std::memcpy(at.out, at.in, kMaxLiterals);
  }
  at.in += length;
  at.out += length;
}

// The first bytes of `word`, `distance` of them, over and over.
inline std::uint64_t repeated(std::uint64_t word, std::size_t distance) {
  constexpr std::uint64_t kFactors[kHalf] = {0,
                                             0x0101010101010101,
                                             0x0001000100010001,
                                             0x0001000001000001,
                                             0x0000000100000001,
                                             0x0000010000000001,
                                             0x0001000000000001,
                                             0x0100000000000001};
  return (word & ((std::uint64_t{1} << (8 * distance)) - 1)) * kFactors[distance];
}

// A match of more than a word that repeats bytes which it is writing itself. The first word stands. Further words may
// be laid down at any multiple of the distance. REQUIRES: 2 <= distance < kWord.
inline void repeat_word(std::uint8_t* out, std::size_t distance, std::size_t length) {
  std::uint8_t word[kWord];
  std::memcpy(word, out, kWord);
  const std::size_t step = kWord - kWord % distance;
  for (std::size_t done = step; done < length; done += step)
    std::memcpy(out + done, word, kWord);
}

// A match that repeats less than half a word. The pattern is put together in a register: reading back what was just
// written would mean to wait for it.
inline void copy_pattern(std::uint8_t* out, std::size_t distance, std::size_t length) {
  const std::uint8_t* const from = out - distance;
  const std::uint64_t pattern = repeated(load_le<std::uint64_t>(from), distance);
  const std::size_t step = kHalf - kHalf % distance;
  store_le(out, pattern);
  store_le(out + step, pattern);
  for (std::size_t done = 2 * step; done < length && done < 2 * kWord; done += step)
    store_le(out + done, pattern);
  if (length <= 2 * kWord) return;
  if (distance == 1) {
    std::memset(out, *from, length);
  } else {
    repeat_word(out, distance, length);
  }
}

// REQUIRES: length >= 1, room for length + kWord bytes.
inline void copy_wide(std::uint8_t* out, std::size_t distance, std::size_t length) {
  if (distance < kHalf) return copy_pattern(out, distance, length);
  const std::uint8_t* const from = out - distance;
  std::memcpy(out, from, kHalf);
  std::memcpy(out + kHalf, from + kHalf, kHalf);
  if (length <= kWord) return;
  if (distance < kWord) return repeat_word(out, distance, length);
  for (std::size_t done = kWord; done < length; done += kWord)
    std::memcpy(out + done, from + done, kWord);
}

// REQUIRES: distance <= produced(), length <= out_left().
inline void copy_match(Cursor& at, std::size_t distance, std::size_t length) {
  // The last bytes of the output have no room behind them and are copied one by one.
  const std::size_t room = at.out_left() - length;
  const std::size_t exact = room >= kWord ? 0 : std::min(length, kWord - room);
  const std::size_t wide = length - exact;
  if (wide > 0) copy_wide(at.out, distance, wide);
  at.out += wide;
  const std::uint8_t* const from = at.out - distance;
  for (std::size_t i = 0; i < exact; ++i)
    at.out[i] = from[i];
  at.out += exact;
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
