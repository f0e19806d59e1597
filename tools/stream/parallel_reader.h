// Streams a range of uncompressed bytes of a container in order, and decodes ahead on all cores.
//
// The range is cut into jobs of about 2 MiB: several small chunks, one chunk, or some blocks of a large chunk. Workers
// decode a ring of jobs, 3 for each thread, in the order of the file; the calling thread passes the results to the sink
// and reuses their memory. So the ring bounds the memory for any chunk size (a job has at least one block).
//
// Thread safety: one call serves one thread; the sink is called from the calling thread only.
// Errors: the first one in the order of the file, after everything before its chunk was passed to the sink; an error of
// the sink; or io EINTR if the stop flag is set.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "frame/container/container.h"

namespace cframefs::tools {

using Sink = std::function<codec::Result<void>(codec::ByteView)>;

/// Streams bytes [begin, begin + length) of the concatenated chunks. REQUIRES: begin + length <= parameters().nbytes.
/// `workers`: the number of decoding threads, at least 1.
codec::Result<void> stream_flat(const frame::Container& container, frame::FlatOffset begin, std::uint64_t length,
                                unsigned workers, const Sink& sink, const std::atomic<bool>& stop);

/// Returns the number of CPUs that this process may use.
unsigned available_workers();

}  // namespace cframefs::tools
