// Decoder states that are reused from stream to stream. Created on first use, owned by a DecodeContext.
//
// Thread safety: one thread at a time, like the context.
#pragma once

#include <memory>

#include <libdeflate.h>
#include <zstd.h>

#include "codec/stream/decode_context.h"

namespace cframefs::codec {

struct FreeZstdContext {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
};
struct FreeInflater {
  void operator()(libdeflate_decompressor* inflater) const { libdeflate_free_decompressor(inflater); }
};

struct DecodeContext::DecoderState {
  std::unique_ptr<ZSTD_DCtx, FreeZstdContext> zstd;
  std::unique_ptr<libdeflate_decompressor, FreeInflater> inflater;
};

}  // namespace cframefs::codec
