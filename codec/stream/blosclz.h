// Decoder of BloscLZ, the codec that only Blosc knows. Format: codecs.md section 3.
//
// Thread safety: pure function.
#pragma once

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

/// Decodes `stream` into all of `out`; anything that does not give exactly so many bytes is corruption.
Result<void> decode_blosclz(ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
