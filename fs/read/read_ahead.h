// Recognises a handle that reads sequentially and has what comes next decoded before it is asked for.
//
// The kernel sends the reads of one sequential reader from several threads and not quite in order, so a read counts as
// sequential if it begins near where the furthest one ended. The window starts at twice the request and doubles while
// the reader goes on, up to the mount's readahead; a jump closes it. All readers together may have half of the cache
// decoded ahead, so that nothing is evicted before it was read.
//
// Where the kernel itself asks ahead for enough to keep all processors decoding, that is left to it: what the thread
// that answers has decoded is still in its processor's cache, which was measured to save a tenth of the time.
//
// A reader of an n-d array in C order comes back to the same blocks for every row that they hold, and needs all of the
// next ones at once: there the window is a whole slab of blocks, if the cache has room for it beside the one at hand.
// One who steps over most of what he passes (a column after the other) is no such reader.
//
// The stored bytes of what comes after that are asked of the disk early, so that nobody waits for a slow one: the
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

/// How far the kernel asks ahead of a sequential reader, and who answers.
struct KernelReadahead {
  std::uint64_t window = 0;   // bytes; 0: not known
  std::uint64_t request = 1;  // bytes of the largest request
  unsigned threads = 0;       // that answer

  /// Whether that keeps `decoders` threads busy with what is decoded `unit` bytes at a time.
  bool suffices(unsigned decoders, std::uint64_t unit) const {
    return threads >= decoders && window / kShares / threads >= std::max(request, unit);
  }
  /// The least window that does, for units up to a request.
  static std::uint64_t least_window(std::uint64_t request, unsigned threads) { return kShares * threads * request; }

 private:
  // While a thread decodes one request, the next must lie ready, and the kernel asks for the next window only when the
  // reader enters the last one. With half of this two threads were measured to be no faster than with others ahead.
  static constexpr std::uint64_t kShares = 4;
};

class ReadAhead {
 public:
  /// What all handles of a mount share.
  struct Shared {
    /// `limit`: as the user wants it, in bytes, 0: off; none: by the threads that may decode, `decoders`, and the
    /// kernel.
    Shared(ReadPath& r, WorkerPool& w, std::optional<std::uint64_t> limit, unsigned decoders);
    ReadPath& read_path;
    WorkerPool& workers;
    const std::uint64_t readahead;  // bytes; 0: off
    const bool may_leave_to_kernel;
    const unsigned decoders;
    KernelReadahead kernel;  // set before the mount serves
    std::atomic<std::uint32_t> sequential_readers{0};
  };

  /// `kernel_asks_ahead`: the handle is read through the kernel's pages.
  ReadAhead(Shared& shared, bool kernel_asks_ahead);
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;

  /// Tells of a read that is about to be served. Says how the reader goes about.
  ReadPath::AccessPattern note(const std::shared_ptr<const FrameSnapshot>& snapshot, std::uint64_t at,
                               std::uint64_t length);

 private:
  /// What queued tasks look at: whether the reader still wants them.
  struct Reader {
    std::atomic<std::uint64_t> position{0};  // how far the reader has come
    std::atomic<std::uint64_t> epoch{0};     // changes when it jumps; tasks of an older epoch are void
  };

  /// What is to be decoded ahead after a read, and what the disk is to read.
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
  const bool kernel_asks_ahead_;
  const std::shared_ptr<Reader> reader_;
  codec::Mutex mutex_;
  std::uint64_t snapshot_ GUARDED_BY(mutex_) = 0;
  std::uint64_t next_ GUARDED_BY(mutex_) = 0;    // where the next read of a sequential reader begins
  std::uint64_t window_ GUARDED_BY(mutex_) = 0;  // 0: not sequential
  bool left_to_kernel_ GUARDED_BY(mutex_) = false;
  std::uint64_t begin_ GUARDED_BY(mutex_) = 0;  // where the last jump led, and bytes that were read since
  std::uint64_t read_ GUARDED_BY(mutex_) = 0;
  std::uint64_t scheduled_ GUARDED_BY(mutex_) = 0;  // everything before is decoded, or in the queue
  std::uint64_t fetched_ GUARDED_BY(mutex_) = 0;    // everything before has been asked of the disk
};

}  // namespace cframefs::fs
