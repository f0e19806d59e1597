// Counters of a mount, shown by stats=on. They count from the start of the mount; units are bytes or events.
//
// The read path gets the counters of decoding and the write-backs get those of writing; the others belong to the mount.
// Thread safety: every counter is atomic; reading all of them is not atomic.
#pragma once

#include <atomic>
#include <cstdint>

#include "fs/util/busy_files.h"
#include "fs/util/error_counters.h"
#include "fs/util/histogram.h"

namespace cframefs::fs {

using Counter = std::atomic<std::uint64_t>;

/// Counters of decoding and of the cache of decoded blocks.
struct DecodingStatistics {
  Counter bytes_fetched{0};      // compressed bytes read to decode blocks
  Counter cache_hits{0};         // cache blocks found decoded, or being decoded by another thread
  Counter cache_misses{0};       // cache blocks that a reader had to decode
  Counter prefetched_blocks{0};  // cache blocks decoded ahead of a sequential reader
  Counter blocks_decoded{0};
  Counter bytes_decoded{0};
  Counter evictions{0};
  Histogram decode_time;  // of a fetch and decode of neighbouring blocks
};

/// Counters of writes into frames and of commits.
struct WritingStatistics {
  Counter writes{0};       // requests to write into frames that reached the daemon
  Counter write_bytes{0};  // uncompressed bytes of these requests
  Counter chunks_encoded{0};
  Counter bytes_encoded{0};  // uncompressed bytes of these chunks
  Counter chunks_copied{0};  // chunks copied between frames in compressed form
  Counter commits{0};
  Counter failed_commits{0};
  Counter bytes_lost{0};     // upper bound: uncompressed bytes that were accepted and could not be committed
  Counter bytes_written{0};  // bytes that commits have written into frames, compaction included
  Counter dead_bytes{0};     // bytes without use in frames that are open for writing, as of their last commit
  Histogram commit_time;
};

struct Statistics {
  Counter lookups{0};
  Counter opens{0};
  Counter reads{0};            // read requests that reached the daemon
  Counter bytes_served{0};     // uncompressed bytes in replies
  Counter backing_changes{0};  // changes of frames by other programs that were detected
  ErrorCounters errors;
  Histogram lookup_time;
  Histogram open_time;
  Histogram read_time;
  Histogram write_time;
  Histogram sync_time;  // fsync(2) and close(2)
  DecodingStatistics decoding;
  WritingStatistics writing;
  BusyFiles busy_files;  // counts if the statistics are served

  /// Makes the histograms count. REQUIRES: no request is served yet.
  void enable_histograms() {
    for (Histogram* histogram :
         {&lookup_time, &open_time, &read_time, &write_time, &sync_time, &decoding.decode_time, &writing.commit_time})
      histogram->enable();
  }
};

}  // namespace cframefs::fs
