// Detects sequential reads of a handle and decodes the next bytes before they are requested.
//
// The kernel sends the reads of one sequential reader from several threads and not quite in order, so a read counts as
// sequential if it begins near the end of the furthest one. The window starts at twice the request size and doubles
// with each read, up to the mount's readahead; a jump closes it. All readers together may decode ahead half of the
// cache, so that nothing is evicted before it is read.
//
// A C-order reader of an n-d array returns to the same blocks for every row that they hold, and then needs all of the
// next blocks at once: its window is a whole slab of blocks, if the cache has room for two. Strided readers, which skip
// most bytes (one column after the other), do not qualify.
//
// Compressed bytes further ahead are requested from the disk early, so that no reader waits for a slow disk: the
// kernel's own read-ahead of a file that several threads read is short.
//
// Thread safety: ReadAhead serves one handle from many threads. Ownership: tasks share the state they need, so a handle
// may be closed while they are queued; they then do nothing.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>

#include "codec/base/mutex.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/read_path.h"
#include "fs/util/worker_pool.h"

namespace cframefs::fs {

class ReadAhead {
 public:
  /// State that all handles of a mount share.
  struct Shared {
    /// `limit`: the user's limit in bytes, 0: off; none: derived from `decoders`, the number of decoding threads.
    Shared(ReadPath& r, WorkerPool& w, std::optional<std::uint64_t> limit, unsigned decoders);
    ReadPath& read_path;
    WorkerPool& workers;
    const std::uint64_t readahead;  // bytes; 0: off
    std::atomic<std::uint32_t> sequential_readers{0};
  };

  /// Returns how far the daemon decodes ahead, in bytes. Arguments: as Shared().
  static std::uint64_t limit_for(std::optional<std::uint64_t> limit, unsigned decoders);

  explicit ReadAhead(Shared& shared);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Records a read that is about to be served, and schedules prefetching. Returns the reader's access pattern.
  ReadPath::AccessPattern note(const std::shared_ptr<const FrameSnapshot>& snapshot, std::uint64_t at,
                               std::uint64_t length);

 private:
  /// State that queued tasks check: whether the reader still wants their result.
  struct Reader {
    std::atomic<std::uint64_t> position{0};  // the furthest offset read
    std::atomic<std::uint64_t> epoch{0};     // changes at a jump; tasks of an older epoch are cancelled
  };

  /// The ranges to decode ahead and to fetch from the disk after a read.
  struct Ahead {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    std::uint64_t epoch = 0;
    std::uint64_t fetch_begin = 0;
    std::uint64_t fetch_end = 0;
  };

  void jump(std::uint64_t end) REQUIRES(mutex_);
  void fetch(const FrameSnapshot& snapshot, std::uint64_t end, Ahead& ahead) REQUIRES(mutex_);
  ReadPath::AccessPattern follow(const FrameSnapshot& snapshot, std::uint64_t at, std::uint64_t length, Ahead& ahead)
      REQUIRES(mutex_);
  std::uint64_t most_ahead(const FrameSnapshot& snapshot) const REQUIRES(mutex_);

  Shared& shared_;
  const std::shared_ptr<Reader> reader_;
  codec::Mutex mutex_;
  std::uint64_t snapshot_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;       // expected offset of the next sequential read
  std::uint64_t window_ GUARDED_BY(mutex_) = 0;     // 0: not sequential
  std::uint64_t begin_ GUARDED_BY(mutex_) = 0;      // offset after the last jump
  std::uint64_t read_ GUARDED_BY(mutex_) = 0;       // bytes read since the last jump
  std::uint64_t scheduled_ GUARDED_BY(mutex_) = 0;  // all bytes before are decoded, or queued to be
  std::uint64_t fetched_ GUARDED_BY(mutex_) = 0;    // all bytes before have been requested from the disk
};

}  // namespace cframefs::fs
