// Iterates over the index entries of a frame's stored chunks, one decoded unit at a time.
//
// Thread safety: one thread. Errors: those of the index.
#pragma once

#include <algorithm>
#include <cstdint>

#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

/// Calls visit(chunk, entry) for each stored chunk of [begin, end) in order. Stops at the first error and returns it.
template <class Visit>
Result<void> for_each_stored(const FrameContainer& frame, std::int64_t begin, std::int64_t end, const Visit& visit) {
  if (const auto uniform = frame.uniform_entry()) {
    if (*uniform < 0) return {};
    for (std::int64_t chunk = begin; chunk < end; ++chunk) {
      if (auto done = visit(chunk, *uniform); !done) return done;
    }
    return {};
  }
  while (begin < end) {
    const auto piece = frame.index_piece(ChunkNumber{begin});
    if (!piece) return codec::Failure(piece.error());
    const auto entries = piece->entries.first(std::min(piece->entries.size(), static_cast<std::size_t>(end - begin)));
    for (const std::int64_t entry : entries) {
      if (entry >= 0) {
        if (auto done = visit(begin, entry); !done) return done;
      }
      ++begin;
    }
  }
  return {};
}

}  // namespace cframefs::frame
