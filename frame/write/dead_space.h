// Measures and locates the dead bytes of a frame: bytes of the chunk section that belong to no chunk.
//
// Thread safety: one thread. Units: bytes. Errors: those of the index; io.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/cframe/frame_container.h"
#include "frame/write/pending_changes.h"

namespace cframefs::frame {

/// Returns the number of dead bytes. For a frame of more than 256 chunks this is an estimate, usually within 3 % of the
/// section: the function checks at 256 offsets whether a chunk lies there. The cost is one pass over the index and the
/// headers of at most 256 chunks, for a frame of any size.
Result<std::uint64_t> measure_dead_bytes(const FrameContainer& frame);

/// A range of dead bytes in the file.
struct DeadRange {
  FileOffset begin;
  std::uint64_t length = 0;
};
/// Returns the dead ranges in the order of the file. Returns none for a frame of more than 2^18 stored chunks. Fails if
/// the header of a chunk is damaged.
Result<std::vector<DeadRange>> find_dead_ranges(const FrameContainer& frame);

/// Returns the stored bytes of the chunks that the pending changes replace or remove. An estimate for more than 4,096
/// chunks.
Result<std::uint64_t> measure_killed_bytes(const FrameContainer& frame, const PendingChanges& pending);

}  // namespace cframefs::frame
