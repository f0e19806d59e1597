// Counters of a mount, shown by stats=on.
//
// Thread safety: every member is atomic; a snapshot is not one instant. Bytes and counts since the mount began.
#pragma once

#include <atomic>
#include <cstdint>

namespace cframefs::fs {

struct Statistics {
  using Counter = std::atomic<std::uint64_t>;

  Counter lookups{0};
  Counter opens{0};
  Counter reads{0};              // requests that reached the daemon
  Counter bytes_served{0};       // plain bytes in replies
  Counter bytes_fetched{0};      // stored bytes read to decode blocks
  Counter cache_hits{0};         // cells found decoded, or being decoded by somebody else
  Counter cache_misses{0};       // cells that a reader had to decode
  Counter prefetched_blocks{0};  // cells decoded ahead of a sequential reader
  Counter blocks_decoded{0};
  Counter bytes_decoded{0};
  Counter evictions{0};
  Counter writes{0};       // requests to write into frames that reached the daemon
  Counter write_bytes{0};  // plain bytes in them
  Counter chunks_encoded{0};
  Counter bytes_encoded{0};  // plain bytes of those chunks
  Counter commits{0};        // states of frames that were switched to
  Counter failed_commits{0};
  Counter bytes_lost{0};       // plain bytes that were taken and could never be committed, at most
  Counter bytes_written{0};    // that commits have put into frames, compacting included
  Counter dead_bytes{0};       // of frames that are open for writing, as counted at their last commit
  Counter errors{0};           // requests answered with an error other than ENOENT
  Counter backing_changes{0};  // changes of frames behind the mount that were noticed
  Counter chunks_copied{0};    // from frame to frame as they are stored
};

}  // namespace cframefs::fs
