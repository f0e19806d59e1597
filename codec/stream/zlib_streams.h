// Decoder and encoder of zlib streams, by libdeflate.
//
// The functions are those of rows of the codec table (codec_table.h).
// Thread safety: one thread per StateSlot. Errors: corruption; io (out of memory).
#pragma once

#include <cstddef>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

Result<void> decode_zlib(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);

/// `level`: of libdeflate.
Result<std::size_t> encode_zlib(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain, ByteSpan out);

}  // namespace cframefs::codec
