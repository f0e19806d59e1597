// Packs uncompressed bytes into a frame: each thread reads a chunk, encodes it, and appends the chunks that are next in
// order. So a chunk is encoded in the cache of the core that has read it, and no dedicated thread reads or writes.
//
// Memory: 4 chunks for each thread, fewer for very large chunks. Thread safety: one call serves one thread. Errors: the
// first in the order of the data; io EINTR if the stop flag is set.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <vector>

#include "frame/cframe/frame_encoding.h"
#include "frame/io/write_target.h"
#include "tools/lib/io.h"

namespace cframefs::tools {

struct Packed {
  std::uint64_t nbytes = 0;  // uncompressed bytes
  std::uint64_t stored = 0;  // the frame's length so far
};

/// Reads at an offset of the input; returns less than `into` only at the end. Threads may call it concurrently.
using ReadAt = std::function<codec::Result<std::size_t>(codec::ByteSpan into, std::uint64_t at)>;

/// Packs all bytes of `input` into the empty file `out`, with these variable-length metalayers (uncompressed contents).
/// `workers`: the number of threads, including the calling one, at least 1. `progress`: called after each chunk of the
/// calling thread. `read_at`: used instead of input.read() if set.
codec::Result<Packed> pack_frame(Input& input, const frame::NewFrame& frame, frame::WriteTarget& out, unsigned workers,
                                 const std::function<void(const Packed&)>& progress, const std::atomic<bool>& stop,
                                 const std::vector<frame::Metalayer>& vlmetalayers = {},
                                 const ReadAt& read_at = nullptr);

}  // namespace cframefs::tools
