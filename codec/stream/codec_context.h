// What decoding and encoding reuse from block to block: scratch memory by slot, and the states of the codecs.
//
// Thread safety: a context serves one thread at a time; threads share an ObjectPool of contexts.
#pragma once

#include <array>
#include <cstddef>

#include "codec/base/bytes.h"
#include "codec/base/scratch.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

/// `Slots`: has an enum class Slot, and kCount, the number of its values.
template <class Slots>
class CodecContext {
 public:
  using Slot = typename Slots::Slot;

  CodecContext() = default;
  CodecContext(const CodecContext&) = delete;
  CodecContext& operator=(const CodecContext&) = delete;

  /// Returns at least `size` bytes of unspecified content, valid until the next call for the same slot.
  ByteSpan scratch(Slot slot, std::size_t size) { return scratch_[static_cast<std::size_t>(slot)].get(size); }

  /// Frees the scratch memory of each slot that has more than `keep` bytes, and the states that have more than four
  /// times that.
  void trim(std::size_t keep) {
    for (Scratch& scratch : scratch_)
      scratch.trim(keep);
    states_.trim(4 * keep);
  }

  CodecStates& states() { return states_; }

 protected:
  ~CodecContext() = default;

 private:
  std::array<Scratch, Slots::kCount> scratch_;
  CodecStates states_;
};

}  // namespace cframefs::codec
