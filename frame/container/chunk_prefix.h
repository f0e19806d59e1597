// The beginning of a stored chunk, read and parsed: header, block starts, dictionary.
//
// Block starts are read a piece at a time, and those that lead nowhere end it: a header alone, before a hole of the
// file, takes no memory for the blocks that it claims.
//
// Thread safety: functions only. Errors: those of the source; corruption, unsupported.
#pragma once

#include "codec/chunk_decoder.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// Of the chunk at `at`, whose header is `header`. `head`: its first bytes, the header and as many more as are there
/// already. REQUIRES: header.cbytes bytes from `at` on lie in the source.
Result<codec::ChunkDecoder> parse_chunk(const ByteSource& source, FileOffset at, const codec::ChunkHeader& header,
                                        ByteView head, const codec::DecodeParams& environment = {});

}  // namespace cframefs::frame
