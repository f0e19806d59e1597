// Decoder of ndlz: a two-dimensional block of bytes is divided into cells of 4 x 4 or 8 x 8, each stored as a token and
// its operands (codecs.md section 8). A cell is a copy of earlier bytes, has some rows copied, is one repeated value,
// or is stored uncompressed.
//
// Thread safety: pure functions. Units: bytes. Errors: corruption; unsupported for other cells.
#pragma once

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec;

/// Decodes `stream` into all of `out`. `side`: rows and columns of a cell, 4 or 8.
Result<void> decode_ndlz(std::uint8_t side, ByteView stream, ByteSpan out);

/// As above, for the codec table; `codec.meta` is the side.
Result<void> decode_ndlz_stream(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
