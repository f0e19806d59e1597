// A run of plain bytes of a container, decoded ahead on all cores and handed over in order.
//
// The run is cut into jobs of about two megabytes: several small chunks, one chunk, or some blocks of a large one. A
// ring of jobs, a few for each thread, is decoded by the workers in the order of the file; the calling thread hands the
// results to the sink and reuses their memory. So memory is bounded by the ring, whatever the chunk size (a job is
// never less than one block).
//
// Thread safety: one call serves one thread; the sink is called from the calling thread only.
// Errors: the first one in the order of the file, after everything before its chunk has been handed over; or what the
// sink returned; or io EINTR when told to stop.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>

#include "frame/container/container.h"

namespace cframefs::tools {

using Sink = std::function<codec::Result<void>(codec::ByteView)>;

/// Bytes [begin, begin + length) of the chunks laid end to end. REQUIRES: begin + length <= parameters().nbytes.
/// `workers`: threads that decode, at least 1.
codec::Result<void> stream_flat(const frame::Container& container, frame::FlatOffset begin, std::uint64_t length,
                                unsigned workers, const Sink& sink, const std::atomic<bool>& stop);

/// One for each CPU that this process may use.
unsigned available_workers();

}  // namespace cframefs::tools
