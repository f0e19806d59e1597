// Encoding of one stream by the encoder of its codec: one compressed stream out, or none if it does not fit.
//
// Format: codecs.md. stream_decoders.h decodes. All encoders write in one call to the caller's memory.
//
// Thread safety: CodecStates serves one thread at a time.
// Errors: unsupported, naming the codec, if it cannot be written; io (out of memory).
#pragma once

#include <cstdint>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamEncoder {
  std::uint8_t compcode = 0;
  int clevel = 5;                          // 1..9
  const Dictionary* dictionary = nullptr;  // made by encoder_dictionary() of the same codec, for the same level
};

/// Encodes `plain` into `out`. Returns the stream's length; 0 if the stream does not fit or does not shrink.
Result<std::size_t> encode_stream(CodecStates& states, const StreamEncoder& encoder, ByteView plain, ByteSpan out);

}  // namespace cframefs::codec
