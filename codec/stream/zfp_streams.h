// Decoder of zfp: blocks of an n-d array of floating-point numbers, decoded by libzfp (codecs.md section 7).
//
// libzfp does not check the length of its stream. The decoder therefore copies the stream to memory for the longest
// read of libzfp, and checks afterwards how many bits were read.
//
// Thread safety: pure functions. Errors: corruption; unsupported for other item sizes or numbers of dimensions.
#pragma once

#include <cstdint>
#include <span>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/stream/codec_states.h"
#include "codec/stream/stream_decoders.h"

namespace cframefs::codec {

/// What a stream holds fixed. Each mode is a codec of its own.
enum class ZfpMode : std::uint8_t { accuracy, precision, rate };

/// Decodes `stream` into all of `out`, one whole block of shape `blockshape`. `meta`: parameter of the mode.
Result<void> decode_zfp(ZfpMode mode, std::uint8_t meta, std::int32_t typesize,
                        std::span<const std::int32_t> blockshape, ByteView stream, ByteSpan out);

/// As above, for the codec table.
template <ZfpMode mode>
Result<void> decode_zfp_stream(StateSlot&, const StreamCodec& codec, ByteView stream, ByteSpan out) {
  return decode_zfp(mode, codec.meta, codec.typesize, codec.blockshape, stream, out);
}

/// The function of a row in the codec table; nullptr in a build without libzfp.
template <ZfpMode mode>
#ifdef CFRAMEFS_WITHOUT_ZFP
inline constexpr decltype(&decode_zfp_stream<mode>) kZfpDecoder = nullptr;
#else
inline constexpr decltype(&decode_zfp_stream<mode>) kZfpDecoder = &decode_zfp_stream<mode>;
#endif

}  // namespace cframefs::codec
