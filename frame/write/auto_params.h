// What a new frame is to be like where its maker leaves that to us: the size of its items, found by trying on the first
// data, and of its chunks.
//
// Thread safety: functions; the context is of one thread. Units: bytes.
#pragma once

#include <cstdint>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_encoding.h"

namespace cframefs::frame {

/// How much data is worth looking at.
inline constexpr std::size_t kSampleBytes = std::size_t{128} << 10;

/// Items of each size that is tried begin at multiples of this: pieces that are joined to a sample should, too.
inline constexpr std::size_t kItemsAlign = 48;

/// The size of the items that `sample` seems to be made of: what the header of a .npy file says; else the one that the
/// data behind zeros in front gets shortest with under these filters, or 1 if none makes much of a difference. Looks at
/// kSampleBytes. `parameters.typesize` is not looked at.
std::int32_t choose_typesize(codec::EncodeContext& context, const codec::EncodeParameters& parameters, ByteView sample);

/// A multiple of the typesize near `wanted`, or near 1 MiB if that is 0. REQUIRES: typesize > 0, both at most
/// codec::kMaxChunkBytes.
std::int32_t choose_chunksize(std::int32_t typesize, std::int64_t wanted);

/// A frame for data that begins with `sample`. `encode.typesize` 0: chosen; `chunksize` 0: chosen.
NewFrame choose_frame(codec::EncodeContext& context, codec::EncodeParameters encode, std::int64_t chunksize,
                      ByteView sample);

}  // namespace cframefs::frame
