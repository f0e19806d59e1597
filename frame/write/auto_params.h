// Chooses the parameters of a new frame that the caller leaves open: the typesize, by trial compression of the first
// data, and the chunk size.
//
// Thread safety: functions; one thread at a time per context. Units: bytes.
#pragma once

#include <cstdint>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_encoding.h"

namespace cframefs::frame {

/// Bytes of the sample that choose_typesize() compresses.
inline constexpr std::size_t kSampleBytes = std::size_t{128} << 10;

/// A common multiple of all typesizes that are tried. Pieces that a caller joins to a sample should begin at multiples.
inline constexpr std::size_t kItemsAlign = 48;

/// Returns the size of the items in `sample`. If the sample is a .npy file, its header tells the size. Otherwise
/// returns the typesize with which the data (kSampleBytes after leading zeros) compresses best with these filters, or 1
/// if no typesize gains at least 3 %. Ignores parameters.typesize.
std::int32_t choose_typesize(codec::EncodeContext& context, const codec::EncodeParameters& parameters, ByteView sample);

/// Returns the largest multiple of the typesize up to `wanted`, or up to 1 MiB if `wanted` is 0; at least the typesize.
/// REQUIRES: typesize > 0, both at most codec::kMaxChunkBytes.
std::int32_t choose_chunksize(std::int32_t typesize, std::int64_t wanted);

/// Returns the parameters of a frame for data that begins with `sample`. Chooses encode.typesize and `chunksize` if
/// they are 0.
NewFrame choose_frame(codec::EncodeContext& context, codec::EncodeParameters encode, std::int64_t chunksize,
                      ByteView sample);

}  // namespace cframefs::frame
