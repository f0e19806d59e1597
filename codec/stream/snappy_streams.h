// Decoder of snappy, a codec of Blosc1, by libsnappy.
//
// The function is that of a row of the codec table (codec_table.h).
// Thread safety: pure function. Errors: corruption.
#pragma once

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

Result<void> decode_snappy(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
