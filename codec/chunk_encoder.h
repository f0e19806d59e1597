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

#include "codec/bytes.h"
#include "codec/chunk_header.h"
#include "codec/encode_context.h"
#include "codec/error.h"

namespace cframefs::codec {

/// Compressor codes (codecs.md section 1) of the codecs that chunks are made with.
inline constexpr std::uint8_t kBlosclz = 0;
inline constexpr std::uint8_t kLz4 = 1;
inline constexpr std::uint8_t kLz4hc = 2;
inline constexpr std::uint8_t kZlib = 4;
inline constexpr std::uint8_t kZstd = 5;

/// What a frame's header says of chunks to come.
struct EncodeParameters {
  std::uint8_t compcode = kZstd;
  std::uint8_t compcode_meta = 0;
  int clevel = 5;  // 0..9; 0: stored as they are
  std::array<std::uint8_t, kFilterSlots> filters{};
  std::array<std::uint8_t, kFilterSlots> filters_meta{};
  std::int32_t typesize = 1;    // the frame's true one, may exceed 255
  std::int32_t blocksize = 0;   // 0: automatic
  std::uint8_t split_mode = 4;  // 1 always, 2 never, 3 auto, 4 forward-compat; 0 as 4
  bool use_dict = false;        // for codecs that know dictionaries
};

struct EncodedChunk {
  SpecialValue special = SpecialValue::none;  // zeros or nan: nothing to store, `bytes` is empty
  UninitializedBytes bytes;                   // else a complete chunk with a 32-byte header
  std::int32_t nbytes = 0;                    // plain length
};

/// The typesize that a chunk's header has room for: items wider than 255 bytes are taken for single bytes.
std::int32_t header_typesize(const EncodeParameters& parameters);

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
