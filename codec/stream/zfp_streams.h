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

namespace cframefs::codec {

/// Compressor codes of the three modes of zfp.
inline constexpr std::uint8_t kZfpAccuracy = 33;
inline constexpr std::uint8_t kZfpPrecision = 34;
inline constexpr std::uint8_t kZfpRate = 35;

/// Decodes `stream` into all of `out`, one whole block of shape `blockshape`. `meta`: parameter of the mode.
/// REQUIRES: compcode is one of these three.
Result<void> decode_zfp(std::uint8_t compcode, std::uint8_t meta, std::int32_t typesize,
                        std::span<const std::int32_t> blockshape, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
