// What of a frame is alive: copied one chunk behind the other, with what is pending.
//
// Thread safety: one thread. Errors: io; corruption of a chunk's header or the index; unsupported, for entries that
// share bytes (a copy would be larger than the frame, without bound).
#pragma once

#include "frame/cframe/frame_container.h"
#include "frame/cframe/index_encoder.h"
#include "frame/io/buffered_appender.h"
#include "frame/write/pending_changes.h"

namespace cframefs::frame {

/// Appends the chunks to `out`, and their entries (counted from `section`, where the chunk section begins) to `index`.
Result<void> copy_live_chunks(const FrameContainer& from, const PendingChanges& pending, std::uint64_t section,
                              BufferedAppender& out, IndexEncoder& index);

/// The same with all chunks as they are committed, of whatever sizes.
Result<void> copy_all_chunks(const FrameContainer& from, std::uint64_t section, BufferedAppender& out,
                             IndexEncoder& index);

/// Stored length of the chunk at `place`, from its header.
Result<std::uint64_t> stored_length(const ChunkLocation& place);

/// The index entry of a chunk that is not stored.
std::int64_t special_entry_of(codec::SpecialValue special);

}  // namespace cframefs::frame
