// Copies the live chunks of a frame and the pending chunks, without gaps.
//
// Chunks are not decoded. Those with a digest are verified, so that a damaged chunk is not copied.
//
// Thread safety: one thread. Errors: io; corruption of a chunk's header or digest, or of the index; unsupported if
// chunks share bytes, because a copy could be larger than the frame, without bound.
#pragma once

#include "frame/cframe/frame_container.h"
#include "frame/cframe/index_encoder.h"
#include "frame/io/buffered_appender.h"
#include "frame/write/pending_changes.h"

namespace cframefs::frame {

/// Appends the chunks to `out` and their entries to `index`. `section`: position in `out` where the chunk section
/// begins, from which entries count.
Result<void> copy_live_chunks(const FrameContainer& from, const PendingChanges& pending, std::uint64_t section,
                              BufferedAppender& out, IndexEncoder& index);

/// Copies all committed chunks, of any sizes, without pending changes.
Result<void> copy_all_chunks(const FrameContainer& from, std::uint64_t section, BufferedAppender& out,
                             IndexEncoder& index);

/// Returns the stored length of the chunk at `location`, from its header. Does not verify the chunk: no byte of it is
/// returned.
Result<std::uint64_t> stored_length(const ChunkLocation& location);

/// Returns the index entry of a special chunk.
std::int64_t special_entry_of(codec::SpecialValue special);

}  // namespace cframefs::frame
