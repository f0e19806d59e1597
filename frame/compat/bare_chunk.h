// A file that is nothing but one chunk (.blosc, .cdata), of Blosc1 or Blosc2.
//
// A chunk has no magic. What tells one is a header without contradictions whose stored length is that of the file.
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/container/container.h"

namespace cframefs::frame {

/// The header of the chunk that takes `size` bytes, exactly those if `whole`, at most those else. `first`: its first 32
/// bytes, or all of them if there are fewer. corruption, unsupported: these are not the first bytes of such a chunk.
Result<codec::ChunkHeader> parse_bare_chunk(ByteView first, std::uint64_t size, bool whole);

/// Sets codec, filters, typesize and blocksize as this chunk has them.
void describe_chunk(const codec::ChunkHeader& header, FrameParameters& parameters);

/// `source`: from the first byte of the chunk. `whole`: as above.
Result<std::shared_ptr<const Container>> open_bare_chunk(std::shared_ptr<const ByteSource> source, bool whole);

}  // namespace cframefs::frame
