#include "codec/stream/blosclz.h"

#include <algorithm>
#include <cstring>
#include <string>

#include <fmt/core.h>

// Most instructions are executed with copies of a fixed length, a pair of machine instructions each; a copy of the
// exact length would be a call or a loop. Fixed-length copies write more bytes than needed: the excess lies after the
// output position and is overwritten by later instructions. Near the end of a buffer the copies are exact.

namespace cframefs::codec {
namespace {

constexpr std::size_t kWord = 16;
constexpr std::size_t kHalf = 8;
// Bytes left in both buffers that guarantee that the excess of a copy stays inside them.
constexpr std::size_t kSlack = 64;
constexpr std::size_t kLiterals = 32;         // control bytes below this are literal runs
constexpr std::size_t kNearDistances = 8192;  // least far distance
// For each distance below kHalf: its largest multiple that is at most kHalf.
constexpr std::size_t kSteps[kHalf] = {0, 8, 8, 6, 8, 5, 6, 7};

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

// Returns the first `distance` bytes of `word`, repeated.
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

// Completes a match longer than a word that overlaps its own output. The caller has written the first word; it may be
// repeated at any multiple of the distance. REQUIRES: kHalf <= distance < kWord.
inline void repeat_word(std::uint8_t* out, std::size_t distance, std::size_t length) {
  std::uint8_t word[kWord];
  std::memcpy(word, out, kWord);
  const std::size_t step = kWord - kWord % distance;
  for (std::size_t done = step; done < length; done += step)
    std::memcpy(out + done, word, kWord);
}

// Executes a match with a distance below half a word. The pattern is built in a register, because reading back bytes
// that were just written would stall.
inline void copy_pattern(std::uint8_t* out, std::size_t distance, std::size_t length) {
  constexpr std::size_t kStores = 4;
  const std::uint64_t pattern = repeated(load_le<std::uint64_t>(out - distance), distance);
  const std::size_t step = kSteps[distance];
  for (std::size_t i = 0; i < kStores; ++i)
    store_le(out + i * step, pattern);
  if (step == kHalf) {
    for (std::size_t done = kStores * kHalf; done < length; done += kStores * kHalf) {
      for (std::size_t i = 0; i < kStores; ++i)
        store_le(out + done + i * kHalf, pattern);
    }
  } else {
    for (std::size_t done = kStores * step; done < length; done += step)
      store_le(out + done, pattern);
  }
}

// REQUIRES: length >= 1, room for length + kSlack bytes.
inline void copy_wide(std::uint8_t* out, std::size_t distance, std::size_t length) {
  if (distance < kHalf) return copy_pattern(out, distance, length);
  const std::uint8_t* const from = out - distance;
  if (distance < kWord) {
    std::memcpy(out, from, kHalf);
    std::memcpy(out + kHalf, from + kHalf, kHalf);
    if (length > kWord) repeat_word(out, distance, length);
    return;
  }
  std::memcpy(out, from, kWord);
  for (std::size_t done = kWord; done < length; done += kWord)
    std::memcpy(out + done, from + done, kWord);
}

// REQUIRES: distance <= produced(), length <= out_left().
inline void copy_match(Cursor& at, std::size_t distance, std::size_t length) {
  // The last bytes of the output have no slack after them and are copied one by one.
  const std::size_t room = at.out_left() - length;
  const std::size_t exact = room >= kSlack ? 0 : std::min(length, kSlack - room);
  const std::size_t wide = length - exact;
  if (wide > 0) copy_wide(at.out, distance, wide);
  at.out += wide;
  const std::uint8_t* const from = at.out - distance;
  for (std::size_t i = 0; i < exact; ++i)
    at.out[i] = from[i];
  at.out += exact;
}

// Reads length and distance of the match whose control byte has been read. Returns false if the input ends too early.
inline bool read_match(const std::uint8_t*& in, const std::uint8_t* end, std::uint8_t control, std::size_t& distance,
                       std::size_t& length) {
  length = (control >> 5) + 2u;
  if (length == 9) {
    std::uint8_t extension = 255;
    while (extension == 255) {
      if (in == end) return false;
      extension = *in++;
      length += extension;
    }
  }
  if (in == end) return false;
  const std::size_t high = control & 31u;
  const std::size_t low = *in++;
  distance = 256 * high + low + 1;
  if (distance == kNearDistances) {
    if (end - in < 2) return false;
    distance += load_be<std::uint16_t>(in);
    in += 2;
  }
  return true;
}

// Executes instructions while both buffers have slack and the stream is valid. `control`: the control byte of the first
// instruction; on return that of the first instruction that is left.
inline void decode_most(Cursor& at, std::uint8_t& control) {
  const std::uint8_t* in = at.in;
  std::uint8_t* out = at.out;
  const std::uint8_t* const in_safe = in + (at.in_left() - std::min(at.in_left(), kSlack));
  const std::uint8_t* const out_safe = out + (at.out_left() - std::min(at.out_left(), kSlack));
  while (in < in_safe && out < out_safe) {
    if (control < kLiterals) {
      const std::size_t length = control + std::size_t{1};
      std::memcpy(out, in, kWord);
      if (length > kWord) std::memcpy(out + kWord, in + kWord, kWord);
      in += length;
      out += length;
    } else {
      std::size_t distance = 0;
      std::size_t length = 0;
      const std::uint8_t* next = in;
      if (!read_match(next, in_safe + kSlack / 2, control, distance, length)) break;
      if (distance > static_cast<std::size_t>(out - at.out_begin)) break;
      if (length > static_cast<std::size_t>(out_safe - out)) break;
      copy_wide(out, distance, length);
      out += length;
      in = next;
    }
    control = *in++;
  }
  at.in = in;
  at.out = out;
}

}  // namespace

Result<void> decode_blosclz(ByteView stream, ByteSpan out) {
  if (stream.empty()) return corrupt("blosclz: the stream is empty");
  Cursor at{stream.data(), stream.data() + stream.size(), out.data(), out.data(), out.data() + out.size()};
  // The first instruction is a literal run, whatever its upper bits are.
  std::uint8_t control = *at.in++ % kLiterals;
  decode_most(at, control);
  while (true) {
    if (control < kLiterals) {
      const std::size_t length = control + std::size_t{1};
      if (length > at.in_left()) return corrupt("blosclz: the stream ends inside a literal run");
      if (length > at.out_left()) return corrupt(fmt::format("blosclz: more than the expected {} bytes", out.size()));
      std::memcpy(at.out, at.in, length);
      at.in += length;
      at.out += length;
      if (at.in == at.in_end) break;
    } else {
      std::size_t distance = 0;
      std::size_t length = 0;
      // A match must not be the last instruction: the reference decoder would not execute it.
      if (!read_match(at.in, at.in_end, control, distance, length) || at.in == at.in_end) {
        return corrupt("blosclz: the stream ends inside or after a match");
      }
      if (distance > at.produced())
        return corrupt(fmt::format("blosclz: match distance {} exceeds the {} decoded bytes", distance, at.produced()));
      if (length > at.out_left()) return corrupt(fmt::format("blosclz: more than the expected {} bytes", out.size()));
      copy_match(at, distance, length);
    }
    control = *at.in++;
  }
  if (at.out != at.out_end) {
    return corrupt(fmt::format("blosclz: decoded {} bytes, expected {}", at.produced(), out.size()));
  }
  return {};
}

Result<void> decode_blosclz_stream(StateSlot&, const StreamCodec&, ByteView stream, ByteSpan out) {
  return decode_blosclz(stream, out);
}

}  // namespace cframefs::codec
