// zfp: blocks of an n-d array of floating-point numbers, through the library of that name (codecs.md section 7).
//
// The library trusts its streams; it is given memory that holds all it could ask for, and what it used is checked.
//
// Thread safety: pure functions. Errors: corruption; unsupported for blocks that zfp has no form for.
#pragma once

#include <cstdint>
#include <span>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

/// Compressor codes of the three modes.
inline constexpr std::uint8_t kZfpAccuracy = 33;
inline constexpr std::uint8_t kZfpPrecision = 34;
inline constexpr std::uint8_t kZfpRate = 35;

/// Decodes `stream` into all of `out`, one whole block of shape `blockshape`. `meta`: the mode's parameter.
/// REQUIRES: compcode is one of these three.
Result<void> decode_zfp(std::uint8_t compcode, std::uint8_t meta, std::int32_t typesize,
                        std::span<const std::int32_t> blockshape, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
