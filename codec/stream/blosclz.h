// Decoder of BloscLZ, a codec that only Blosc uses. Format: codecs.md section 3.
//
// Thread safety: pure function.
#pragma once

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

/// Decodes `stream` into `out`. corruption: the stream does not decode to exactly out.size() bytes.
Result<void> decode_blosclz(ByteView stream, ByteSpan out);

/// As above, for the codec table.
Result<void> decode_blosclz_stream(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
