// A file that consists of one chunk (.blosc, .cdata), of Blosc1 or Blosc2.
//
// A chunk has no magic bytes. A file is a chunk if its header is valid and its stored length is that of the file.
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/container/container.h"

namespace cframefs::frame {

/// Parses the header of a chunk in a file of `size` bytes, all of which the chunk must take if `whole`. `first`: the
/// first 32 bytes of the file, or all if there are fewer. corruption, unsupported: the file is not such a chunk.
Result<codec::ChunkHeader> parse_bare_chunk(ByteView first, std::uint64_t size, bool whole);

/// Sets codec, filters, typesize and blocksize of `parameters` to those of a chunk.
void describe_chunk(const codec::ChunkHeader& header, FrameParameters& parameters);

/// Opens a bare chunk. `source`: begins with the chunk. `whole`: as for parse_bare_chunk().
Result<std::shared_ptr<const Container>> open_bare_chunk(std::shared_ptr<const ByteSource> source, bool whole);

}  // namespace cframefs::frame
