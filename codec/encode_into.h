// Chunks made in memory that serves again: a fresh page for each byte of a chunk costs as much as fast codecs do.
//
// Thread safety: function; an EncodeContext and a chunk are of one thread at a time. Ownership: the chunk keeps its
// memory. Errors: as encode_chunk().
#pragma once

#include "codec/chunk_encoder.h"

namespace cframefs::codec {

/// As encode_chunk(), into `chunk`, whose memory is used again. After an error its content is unspecified.
Result<void> encode_into(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                         EncodedChunk& chunk);

}  // namespace cframefs::codec
