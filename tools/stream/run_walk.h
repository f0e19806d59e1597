// A walk over the chunks of a container in stored order, in runs of chunks of one kind.
//
// Thread safety: functions only. Errors: those of the index and of `add`; EINTR if `stop` is set.
#pragma once

#include <atomic>
#include <cerrno>
#include <cstdint>

#include "frame/container/container.h"
#include "tools/lib/progress.h"

namespace cframefs::tools {

/// Calls add(run) for each run of chunks, until it returns an error. Reports progress in chunks.
template <class Add>
codec::Result<void> for_each_run(const frame::Container& container, const std::atomic<bool>& stop, Progress& progress,
                                 const Add& add) {
  constexpr std::int64_t kRunsPerUpdate = 256;
  const std::int64_t chunks = container.chunk_count();
  const auto runs = container.runs(frame::ChunkNumber{0}, frame::ChunkNumber{chunks});
  frame::ChunkRun run;
  for (std::int64_t number = 0;; ++number) {
    if (stop.load(std::memory_order_relaxed)) return codec::io_error(EINTR, "read");
    const auto more = runs->next(run);
    if (!more) return codec::Failure(more.error());
    if (!*more) return {};
    if (number % kRunsPerUpdate == 0) {
      progress.update(static_cast<std::uint64_t>(run.first.value), static_cast<std::uint64_t>(chunks));
    }
    if (auto added = add(run); !added) return added;
  }
}

}  // namespace cframefs::tools
