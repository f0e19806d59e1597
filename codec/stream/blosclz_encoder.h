// Encoder of BloscLZ. Format: codecs.md section 3; blosclz.h decodes.
//
// A search for repeats by one hash table of the latest places of four bytes, greedy, with longer and longer steps where
// nothing repeats. Like the reference encoder it first tries a sample, and leaves streams alone that would not shrink
// enough at their level to be worth the time of decoding them.
//
// Thread safety: pure but for the table, which serves one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::codec {

/// Where four bytes of some hash were seen last. Kept from stream to stream without being cleared: places count on.
class BlosclzTable {
 public:
  static constexpr unsigned kLog = 14;

  /// Starts a stream of `length` bytes: places are kept as the returned base plus the offset, and what is less than the
  /// base is of an earlier stream.
  std::uint32_t begin(std::size_t length);
  std::uint32_t* slots() { return slots_.data(); }

 private:
  std::vector<std::uint32_t> slots_;
  std::uint32_t next_ = 0;
};

/// Encodes `plain` into `out` at `clevel` 1..9 and returns the stream's length; 0 where it does not fit or is not worth
/// it.
std::size_t encode_blosclz(BlosclzTable& table, int clevel, ByteView plain, ByteSpan out);

}  // namespace cframefs::codec
