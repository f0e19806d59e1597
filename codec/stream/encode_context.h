// What a thread needs to encode: codec states and scratch memory, kept from one chunk to the next.
//
// Thread safety: an EncodeContext serves one thread at a time; an EncodeContextPool may be shared and hands them out.
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

  /// Scratch memory of at least `size` bytes, contents unspecified; valid until the next call for the same slot.
  /// Slots are independent: chunk (the chunk as it grows), filtered and other (a block between two filters), samples
  /// (what a dictionary is made of).
  enum class Slot { chunk, filtered, other, samples };
  ByteSpan scratch(Slot slot, std::size_t size);

  /// Gives back scratch memory beyond `keep` bytes per slot, and codec states that have grown beyond it.
  void trim(std::size_t keep);

  /// Codec states of this thread; only codec/ looks inside.
  struct DecoderState;
  DecoderState& states() { return *states_; }

 private:
  static constexpr std::size_t kSlots = 4;
  std::array<Scratch, kSlots> scratch_;
  std::unique_ptr<DecoderState> states_;
};

using EncodeContextPool = ObjectPool<EncodeContext>;

}  // namespace cframefs::codec
