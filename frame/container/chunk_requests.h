// What is requested of a chunk on a server before it is opened, so that opening it and reading a part of it take one
// round trip.
//
// A short chunk is requested whole. Of a long one, two ranges are requested at once: header with block starts, and the
// range where the part is if all blocks are compressed alike. If it is elsewhere, its reader requests it when it knows
// the block starts. While many readers wait for the server, chunks are long that are usually short, and the range of
// the part is narrow: the link has no room for what only may be read.
//
// Thread safety: functions only. Errors: none; a request is a hint.
#pragma once

#include <optional>

#include "codec/chunk_decoder.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// Requests what a reader of the chunk needs. `soon`: the inner bytes that it reads first, if it knows them. REQUIRES:
/// the chunk is stored, and its source is remote.
void request_chunk(const Container& container, ChunkNumber chunk, const ChunkLocation& location,
                   const std::optional<codec::ByteRange>& soon);

}  // namespace cframefs::frame
