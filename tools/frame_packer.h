// Makes a frame of a stream of plain bytes: read in order, encoded on all cores, written in order.
//
// Memory: a few chunks for each thread, less where chunks are very large. Thread safety: one call serves one thread.
// Errors: the first in the order of the data; io EINTR when told to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "frame/file_ops.h"
#include "frame/frame_image.h"
#include "tools/io.h"

namespace cframefs::tools {

struct Packed {
  std::uint64_t nbytes = 0;  // plain bytes
  std::uint64_t stored = 0;  // the frame's length so far
};

/// Packs all that `input` has into the empty file `fd`. `workers`: threads that encode, at least 1. `progress`: called
/// now and then from the calling thread.
codec::Result<Packed> pack_frame(Input& input, const frame::NewFrame& frame, frame::FileOps& files, int fd,
                                 unsigned workers, const std::function<void(const Packed&)>& progress,
                                 const std::atomic<bool>& stop);

}  // namespace cframefs::tools
