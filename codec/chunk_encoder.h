// Makes chunks: plain bytes in, a complete Blosc2 chunk out, that any reader of Blosc2 since 2.0.3 decodes.
//
// Format: chunk.md; what it warns writers of is not done (no special chunk of 32 bytes, no split blocks with a
// dictionary, no block size that is no multiple of the typesize, no slack). Units: bytes.
//
// Thread safety: functions; an EncodeContext is of one thread at a time. Ownership: the result owns its bytes.
// Errors: unsupported (a codec or filter that loses bits or that is not ours), invalid (parameters out of range, a
// chunk too long), io (out of memory).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/chunk_header.h"
#include "codec/format/encode_parameters.h"
#include "codec/stream/encode_context.h"

namespace cframefs::codec {

struct EncodedChunk {
  SpecialValue special = SpecialValue::none;  // zeros or nan: nothing to store, `bytes` is empty
  UninitializedBytes bytes;                   // else a complete chunk with a 32-byte header
  std::int32_t nbytes = 0;                    // plain length
};

/// Whether chunks of these parameters can be made, without loss.
Result<void> check_encodable(const EncodeParameters& parameters);

/// Zeros become special only if they are whole items, because releases before 3.0 want it so; NaNs if they are all the
/// quiet NaN of float or double. Whatever would not get shorter is stored as it is.
Result<EncodedChunk> encode_chunk(EncodeContext& context, const EncodeParameters& parameters, ByteView plain);

/// The same into `chunk`, whose memory is used again and keeps as much room as the plain bytes take: a fresh page for
/// each byte costs as much as fast codecs do, and so does a copy. After an error its content is unspecified.
Result<void> encode_into(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                         EncodedChunk& chunk);

}  // namespace cframefs::codec
