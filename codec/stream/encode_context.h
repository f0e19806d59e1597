// Codec states and scratch memory for encoding, reused from chunk to chunk.
//
// Thread safety: an EncodeContext serves one thread at a time; threads share an EncodeContextPool.
#pragma once

#include <array>
#include <cstddef>
#include <memory>

#include "codec/base/bytes.h"
#include "codec/base/context_pool.h"
#include "codec/base/scratch.h"

namespace cframefs::codec {

class EncodeContext {
 public:
  EncodeContext();
  ~EncodeContext();
  EncodeContext(const EncodeContext&) = delete;
  EncodeContext& operator=(const EncodeContext&) = delete;

  /// Returns at least `size` bytes of unspecified content, valid until the next call for the same slot. The slots:
  ///   chunk            the chunk that is being encoded
  ///   filtered, other  a block before and after a filter
  ///   samples          training samples of a dictionary
  enum class Slot { chunk, filtered, other, samples };
  ByteSpan scratch(Slot slot, std::size_t size);

  /// Frees the scratch memory of each slot that has more than `keep` bytes, and the zstd state if it has more than four
  /// times that.
  void trim(std::size_t keep);

  /// Returns the codec states, which are private to codec/.
  struct EncoderState;
  EncoderState& states() { return *states_; }

 private:
  static constexpr std::size_t kSlots = 4;
  std::array<Scratch, kSlots> scratch_;
  std::unique_ptr<EncoderState> states_;
};

using EncodeContextPool = ObjectPool<EncodeContext>;

}  // namespace cframefs::codec
