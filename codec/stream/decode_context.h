// Codec states and scratch memory for decoding, reused from block to block.
//
// Thread safety: a DecodeContext serves one thread at a time; threads share a ContextPool.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "codec/base/bytes.h"
#include "codec/base/context_pool.h"
#include "codec/base/scratch.h"

namespace cframefs::codec {

class DecodeContext {
 public:
  DecodeContext();
  ~DecodeContext();
  DecodeContext(const DecodeContext&) = delete;
  DecodeContext& operator=(const DecodeContext&) = delete;

  /// Returns at least `size` bytes of unspecified content, valid until the next call for the same slot. The slots:
  ///   stored     compressed bytes as read; for callers, codec/ does not use it
  ///   streams    output of the codec before the filters are undone
  ///   partial    a block of which the caller needs a part
  ///   reference  block 0 for delta, or the previous block for filter 34
  enum class Slot { stored, streams, partial, reference };
  ByteSpan scratch(Slot slot, std::size_t size);

  /// Frees the scratch memory of each slot that has more than `keep` bytes.
  void trim(std::size_t keep);

  /// Returns the codec states, which are private to codec/.
  struct DecoderState;
  DecoderState& states() { return *states_; }

 private:
  static constexpr std::size_t kSlots = 4;
  std::array<Scratch, kSlots> scratch_;
  std::unique_ptr<DecoderState> states_;
};

using ContextPool = ObjectPool<DecodeContext>;

}  // namespace cframefs::codec
