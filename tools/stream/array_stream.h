// Streams a range of the flat bytes of any view, in order: the header, then chunks or the items of an array.
//
// Arrays are assembled a few megabytes at a time from blocks. All workers decode blocks in parallel. A block is kept
// until all its items were passed on, or until too many are kept: then the oldest are dropped, and decoded again when
// needed.
//
// Thread safety and errors: as parallel_reader.h; before an error the output ends some megabytes before the damage.
#pragma once

#include "frame/array/flat_view.h"
#include "tools/stream/parallel_reader.h"

namespace cframefs::tools {

/// Passes bytes [begin, begin + length) of the view to `sink`. REQUIRES: begin + length <= view.size().
codec::Result<void> stream_view(const frame::FlatView& view, frame::FlatOffset begin, std::uint64_t length,
                                unsigned workers, const Sink& sink, const std::atomic<bool>& stop);

}  // namespace cframefs::tools
