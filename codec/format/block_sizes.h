// The choices of a writer that leaves them to us: how long blocks are and whether they are split into streams.
//
// The rules are those of C-Blosc2 (codecs.md sections 5 and 6), so that frames come out as its users expect.
// Units: bytes. Thread safety: pure functions.
#pragma once

#include <cstdint>

namespace cframefs::codec {

struct EncodeParameters;

/// The length of the blocks of a chunk of `nbytes` > 0: a multiple of the typesize unless the chunk is shorter than one
/// item, and no longer than the chunk.
std::int32_t choose_blocksize(const EncodeParameters& parameters, std::int32_t nbytes);

/// Whether blocks of `blocksize` are split into as many streams as items have bytes.
bool choose_split(const EncodeParameters& parameters, std::int32_t blocksize);

}  // namespace cframefs::codec
