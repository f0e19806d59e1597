// Codec states and scratch memory for decoding.
//
// Thread safety: a DecodeContext serves one thread at a time; threads share a ContextPool.
#pragma once

#include <cstddef>

#include "codec/base/context_pool.h"
#include "codec/stream/codec_context.h"

namespace cframefs::codec {

struct DecodeSlots {
  enum class Slot {
    stored,     // compressed bytes as read; for callers, codec/ does not use it
    streams,    // output of the codec before the filters are undone
    partial,    // a block of which the caller needs a part
    reference,  // block 0 for delta, or the previous block for filter 34
  };
  static constexpr std::size_t kCount = 4;
};

class DecodeContext final : public CodecContext<DecodeSlots> {};

using ContextPool = ObjectPool<DecodeContext>;

}  // namespace cframefs::codec
