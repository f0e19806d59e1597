// Encoder states that are reused from stream to stream. Created on first use, owned by an EncodeContext.
//
// Thread safety: one thread at a time, like the context.
#pragma once

#include <memory>

#include <libdeflate.h>
#include <lz4.h>
#include <lz4hc.h>
#include <zstd.h>

#include "codec/stream/blosclz_encoder.h"
#include "codec/stream/encode_context.h"

namespace cframefs::codec {

struct FreeZstdEncoder {
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
};
struct FreeDeflater {
  void operator()(libdeflate_compressor* deflater) const { libdeflate_free_compressor(deflater); }
};
struct FreeLz4Stream {
  void operator()(LZ4_stream_t* stream) const { LZ4_freeStream(stream); }
};
struct FreeLz4hcStream {
  void operator()(LZ4_streamHC_t* stream) const { LZ4_freeStreamHC(stream); }
};

struct EncodeContext::EncoderState {
  BlosclzTable blosclz;
  std::unique_ptr<LZ4_stream_t, FreeLz4Stream> lz4;
  std::unique_ptr<LZ4_streamHC_t, FreeLz4hcStream> lz4hc;
  std::unique_ptr<libdeflate_compressor, FreeDeflater> deflater;
  int deflater_level = 0;
  std::unique_ptr<ZSTD_CCtx, FreeZstdEncoder> zstd;
};

}  // namespace cframefs::codec
