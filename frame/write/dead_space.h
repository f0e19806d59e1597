// How much of a frame's chunk section no chunk takes, and where that is.
//
// Thread safety: one thread. Units: bytes. Errors: those of the index; io.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/cframe/frame_container.h"
#include "frame/write/pending_changes.h"

namespace cframefs::frame {

/// Bytes of the chunk section that no chunk takes. Of a frame of many chunks this is an estimate, as a rule to three
/// parts of a hundred: it is asked for some hundred places of the section whether a chunk lies there. So it costs one
/// walk through the index and the headers of some hundred chunks, however large the frame is.
Result<std::uint64_t> measure_dead_bytes(const FrameContainer& frame);

/// Where they are, in the file, by place; what is damaged counts as alive. None are told of a frame of very many
/// chunks.
struct DeadRange {
  FileOffset begin;
  std::uint64_t length = 0;
};
Result<std::vector<DeadRange>> find_dead_ranges(const FrameContainer& frame);

/// Stored bytes of the chunks that the next state does without; of very many an estimate.
Result<std::uint64_t> measure_killed_bytes(const FrameContainer& frame, const PendingChanges& pending);

}  // namespace cframefs::frame
