// Encodes uncompressed bytes into a complete Blosc2 chunk that all readers of Blosc2 since 2.0.3 decode.
//
// Format: chunk.md. The encoder follows its warnings to writers: no stored special chunks of 32 bytes, no split blocks
// with a dictionary, no block size that is not a multiple of the typesize, no slack. Units: bytes.
//
// Thread safety: functions; an EncodeContext serves one thread at a time. Ownership: the result owns its bytes.
// Errors: unsupported (a lossy or unknown codec or filter), invalid (parameters out of range, a chunk too long), io
// (out of memory).
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
  SpecialValue special = SpecialValue::none;  // zeros or nan: there is nothing to store, `bytes` is empty
  UninitializedBytes bytes;                   // else a complete chunk with a 32-byte header
  std::int32_t nbytes = 0;                    // uncompressed length
};

/// Checks that chunks with these parameters can be encoded without loss.
Result<void> check_encodable(const EncodeParameters& parameters);

/// Encodes `plain`. Zeros become a special chunk only if they are whole items, as releases before 3.0 require; items
/// become one if they all are the quiet NaN of float or double. Bytes that do not shrink are stored uncompressed.
Result<EncodedChunk> encode_chunk(EncodeContext& context, const EncodeParameters& parameters, ByteView plain);

/// Encodes `plain` into `chunk` and reuses its memory, which keeps a capacity of about the length of `plain`: page
/// faults for fresh memory cost as much as fast codecs do, and so does a copy. After an error `chunk` is unspecified.
Result<void> encode_into(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                         EncodedChunk& chunk);

}  // namespace cframefs::codec
