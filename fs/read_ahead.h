// Recognises a handle that reads sequentially and has what comes next decoded before it is asked for.
//
// The kernel sends the reads of one sequential reader from several threads and not quite in order, so a read counts as
// sequential if it begins near where the furthest one ended. The window starts at twice the request and doubles while
// the reader goes on, up to the mount's readahead; a jump closes it. All readers together may have half of the cache
// decoded ahead, so that nothing is evicted before it was read.
//
// A reader of an n-d array in C order comes back to the same blocks for every row that they hold, and needs all of the
// next ones at once: there the window is a whole slab of blocks, if the cache has room for it beside the one at hand.
// One who steps over most of what he passes (a column after the other) is no such reader.
//
// Thread safety: ReadAhead serves one handle from many threads. Ownership: tasks share the state they need, so a handle
// may be closed while they are queued; they then do nothing.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "codec/mutex.h"
#include "fs/generation.h"
#include "fs/read_route.h"
#include "fs/worker_pool.h"

namespace cframefs::fs {

class ReadAhead {
 public:
  /// What all handles of a mount share.
  struct Shared {
    Shared(ReadRoute& r, WorkerPool& w, std::uint64_t limit) : route(r), workers(w), readahead(limit) {}
    ReadRoute& route;
    WorkerPool& workers;
    const std::uint64_t readahead;  // bytes; 0: off
    std::atomic<std::uint32_t> sequential_readers{0};
  };

  explicit ReadAhead(Shared& shared);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Tells of a read that is about to be served. Says how the reader goes about.
  ReadRoute::Manner note(const std::shared_ptr<const Generation>& generation, std::uint64_t at, std::uint64_t length);

 private:
  /// What queued tasks look at: whether the reader still wants them.
  struct Reader {
    std::atomic<std::uint64_t> position{0};  // how far the reader has come
    std::atomic<std::uint64_t> epoch{0};     // changes when it jumps; tasks of an older epoch are void
  };

  /// What is to be decoded ahead after a read.
  struct Ahead {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t epoch = 0;
  };

  void jump(std::uint64_t end) REQUIRES(mutex_);
  ReadRoute::Manner follow(const Generation& generation, std::uint64_t at, std::uint64_t length, Ahead& ahead)
      REQUIRES(mutex_);
  std::uint64_t most_ahead(const Generation& generation) const;

  Shared& shared_;
  const std::shared_ptr<Reader> reader_;
  codec::Mutex mutex_;
  std::uint64_t generation_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;    // where the next read of a sequential reader begins
  std::uint64_t window_ GUARDED_BY(mutex_) = 0;  // 0: not sequential
  std::uint64_t begin_ GUARDED_BY(mutex_) = 0;   // where the last jump led, and bytes that were read since
  std::uint64_t read_ GUARDED_BY(mutex_) = 0;
  std::uint64_t scheduled_ GUARDED_BY(mutex_) = 0;  // everything before is decoded, or in the queue
};

}  // namespace cframefs::fs
