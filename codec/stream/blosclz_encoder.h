// Encoder of BloscLZ. Format: codecs.md section 3; blosclz.h decodes.
//
// A greedy match search with one hash table of the latest position of each four bytes; steps grow while nothing
// matches.
// Like the reference encoder it first encodes samples, and rejects streams that would not shrink enough at their level
// to be worth the decoding time.
//
// Thread safety: pure but for the table, which serves one thread at a time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

/// The latest position of each hash of four bytes. Reused from stream to stream without being cleared: positions keep
/// counting up.
class BlosclzTable {
 public:
  static constexpr unsigned kLog = 14;

  /// Starts a stream of `length` bytes and returns its base. Slots hold base plus offset; a value below the base
  /// belongs to an earlier stream.
  std::uint32_t begin(std::size_t length);
  std::uint32_t* slots() { return slots_.data(); }

 private:
  std::vector<std::uint32_t> slots_;
  std::uint32_t next_ = 0;
};

/// Encodes `plain` into `out` at `clevel` 1..9. Returns the stream's length; 0 if the stream does not fit or would not
/// shrink enough.
std::size_t encode_blosclz(BlosclzTable& table, int clevel, ByteView plain, ByteSpan out);

/// As above, for the codec table.
Result<std::size_t> encode_blosclz_stream(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain,
                                          ByteSpan out);

}  // namespace cframefs::codec
