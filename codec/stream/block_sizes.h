// Automatic choices for writers: the length of blocks, and whether they are split into streams.
//
// The rules are those of C-Blosc2 (codecs.md sections 5 and 6), so that frames look as its users expect.
// Units: bytes. Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace cframefs::codec {

struct EncodeParameters;

/// Returns the length of the blocks of a chunk of `nbytes` > 0: a multiple of the typesize unless the chunk is shorter
/// than one item, and no longer than the chunk.
std::int32_t choose_blocksize(const EncodeParameters& parameters, std::int32_t nbytes);

/// Returns true if blocks of `blocksize` are split into one stream per byte of an item.
bool choose_split(const EncodeParameters& parameters, std::int32_t blocksize);

}  // namespace cframefs::codec
