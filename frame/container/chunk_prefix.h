// Reads and parses the beginning of a stored chunk: header, block starts, dictionary.
//
// Block starts are read in parts, and the first invalid one ends the read. A crafted header in front of a hole of the
// file thus takes no memory for all the blocks that it claims.
//
// Thread safety: functions only. Errors: those of the source; corruption, unsupported.
#pragma once

#include "codec/chunk_decoder.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// Returns the decoder of the chunk at `at`, whose header is `header`. `head`: the first bytes of the chunk that are
/// already in memory, at least the header. REQUIRES: header.cbytes bytes from `at` lie in the source.
Result<codec::ChunkDecoder> parse_chunk(const ByteSource& source, FileOffset at, const codec::ChunkHeader& header,
                                        ByteView head, const codec::DecodeParams& environment = {});

}  // namespace cframefs::frame
