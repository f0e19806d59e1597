// What a thread needs to decode: codec states and scratch memory, kept from one block to the next.
//
// A DecodeContext serves one thread at a time; a ContextPool hands contexts out. Scratch memory is returned to the
// system by trim().
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

  /// Scratch memory of at least `size` bytes, contents unspecified; valid until the next call for the same slot.
  /// Slots are independent: stored (compressed bytes as read, for the caller; codec/ never touches it), streams (codec
  /// output before the filters), partial (a block of which the caller wants a part), reference (block 0 for delta).
  enum class Slot { stored, streams, partial, reference };
  ByteSpan scratch(Slot slot, std::size_t size);

  /// Gives back scratch memory beyond `keep` bytes per slot.
  void trim(std::size_t keep);

  /// Codec states of this thread; only codec/ looks inside.
  struct DecoderState;
  DecoderState& states() { return *states_; }

 private:
  static constexpr std::size_t kSlots = 4;
  std::array<Scratch, kSlots> scratch_;
  std::unique_ptr<DecoderState> states_;
};

using ContextPool = ObjectPool<DecodeContext>;

}  // namespace cframefs::codec
