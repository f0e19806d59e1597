// Makes a frame of plain bytes: each thread reads a chunk, encodes it, and writes what is next in order. So bytes are
// encoded in the cache of the core that has just read them, and nobody waits for a thread that does nothing else.
//
// Memory: a few chunks for each thread, less where chunks are very large. Thread safety: one call serves one thread.
// Errors: the first in the order of the data; io EINTR when told to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "frame/cframe/frame_encoding.h"
#include "frame/io/file_ops.h"
#include "tools/lib/io.h"

namespace cframefs::tools {

struct Packed {
  std::uint64_t nbytes = 0;  // plain bytes
  std::uint64_t stored = 0;  // the frame's length so far
};

/// Reads what an input's read() would give from a place on: fills `into` but at the end. Any threads may call it at
/// once.
using ReadAt = std::function<codec::Result<std::size_t>(codec::ByteSpan into, std::uint64_t at)>;

/// Packs all that `input` has into the empty file `fd`, with these variable-length metalayers (plain contents).
/// `workers`: threads that do it, the calling one included, at least 1. `progress`: called now and then from the
/// calling thread.
codec::Result<Packed> pack_frame(Input& input, const frame::NewFrame& frame, frame::FileOps& files, int fd,
                                 unsigned workers, const std::function<void(const Packed&)>& progress,
                                 const std::atomic<bool>& stop, const std::vector<frame::Metalayer>& vlmetalayers = {},
                                 const ReadAt& read_at = nullptr);

}  // namespace cframefs::tools
