// What the container of a chunk tells its decoder, because the chunk's header does not.
#pragma once

#include <cstdint>
#include <vector>

namespace cframefs::codec {

/// What a chunk needs to be told by the frame that holds it.
struct DecodeParams {
  /// Typesize of the superchunk, which bytedelta with meta 0 asks for; 0: take the chunk's own.
  std::int32_t frame_typesize = 0;
  /// Frames of 2.0.0-beta.1 and beta.2 hold version-4 chunks with the bitshuffle layout of Blosc1 (filters.md section
  /// 4).
  bool old_bitshuffle = false;
  /// The shape of a block in items, where the chunks are tiles of an n-d array; else empty. Some registered codecs and
  /// filters cannot do without.
  std::vector<std::int32_t> blockshape = {};
};

}  // namespace cframefs::codec
