// A run of the flat bytes of any view, handed over in order: what stands in front, then chunks or the items of an
// array.
//
// Arrays are put together a few megabytes at a time from blocks that are decoded by all workers at once and kept until
// all their items have gone out, or until too many are kept: then the oldest go, and are decoded again if need be.
//
// Thread safety and errors: as parallel_reader.h; what is handed over before an error ends some megabytes before the
// damage.
#pragma once

#include "frame/container/flat_view.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

/// Bytes [begin, begin + length) of the view. REQUIRES: begin + length <= view.size().
codec::Result<void> stream_view(const frame::FlatView& view, frame::FlatOffset begin, std::uint64_t length,
                                unsigned workers, const Sink& sink, const std::atomic<bool>& stop);

}  // namespace cframefs::tools
