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
#include <span>
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

/// Returns true if blocks that a new version of a chunk has in common with `earlier` can be taken over as stored: if
/// encode_chunk() would use the same codec, filters, block size and division into streams for `nbytes` bytes, and no
/// block depends on bytes outside of it.
bool can_keep_blocks(const EncodeParameters& parameters, const ChunkHeader& earlier, std::int32_t nbytes);

/// Encodes a new version of a chunk. `kept`: for each block its stored bytes in the earlier version
/// (ChunkDecoder::stored_range()) if the uncompressed bytes are the same, else an empty view; `plain` is not read
/// there. Returns a chunk without bytes if it would not shrink. REQUIRES: can_keep_blocks() of the earlier version; at
/// least one block is kept.
Result<EncodedChunk> encode_with_kept_blocks(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                                             std::span<const ByteView> kept);

/// Encodes `plain` into `chunk` and reuses its memory, which keeps a capacity of about the length of `plain`: page
/// faults for fresh memory cost as much as fast codecs do, and so does a copy. After an error `chunk` is unspecified.
Result<void> encode_into(EncodeContext& context, const EncodeParameters& parameters, ByteView plain,
                         EncodedChunk& chunk);

}  // namespace cframefs::codec
