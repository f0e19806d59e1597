// Codec states and scratch memory for encoding.
//
// Thread safety: an EncodeContext serves one thread at a time; threads share an EncodeContextPool.
#pragma once

#include <cstddef>

#include "codec/base/context_pool.h"
#include "codec/stream/codec_context.h"

namespace cframefs::codec {

struct EncodeSlots {
  enum class Slot {
    chunk,     // the chunk that is being encoded
    filtered,  // a block before and after a filter
    other,     // likewise, for the next filter
    samples,   // training samples of a dictionary
  };
  static constexpr std::size_t kCount = 4;
};

class EncodeContext final : public CodecContext<EncodeSlots> {};

using EncodeContextPool = ObjectPool<EncodeContext>;

}  // namespace cframefs::codec
