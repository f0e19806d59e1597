// What a decoder needs to know of the frame that holds a chunk, because the chunk's header does not say it.
#pragma once

#include <cstdint>
#include <vector>

namespace cframefs::codec {

struct DecodeParams {
  /// Typesize of the superchunk, used by bytedelta with meta 0; 0: use the chunk's typesize.
  std::int32_t frame_typesize = 0;
  /// Version-4 chunks use the bitshuffle layout of Blosc1, as in frames of 2.0.0-beta.1 and beta.2 (filters.md section
  /// 4).
  bool old_bitshuffle = false;
  /// The shape of a block in items if the chunks are tiles of an n-d array, else empty. Some registered codecs and
  /// filters need it.
  std::vector<std::int32_t> blockshape = {};
};

}  // namespace cframefs::codec
