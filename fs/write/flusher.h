// Commits files that have been dirty for too long or too much, from a thread of its own, and keeps files that could not
// be committed. The thread also removes chunk files of sparse frames that the last reader of their state has left.
//
// A commit that fails (another program holds a lock, the disk is full) is retried after a pause that grows. A file that
// the last program closes before that is kept here with its uncommitted data until it is committed, or can never be, or
// the mount ends. No file waits for the locks of another one. While nothing is dirty the thread sleeps without a
// timeout.
//
// Thread safety: all members may be called concurrently. Lock order: `mutex_` is never held during a call. Ownership:
// weak pointers to write-backs, except for kept ones. Errors: the write-back keeps what could not be committed, and
// reports the error to the next fsync or close.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "codec/base/mutex.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

class Flusher {
 public:
  using Time = std::chrono::steady_clock::time_point;
  /// Called with the result of each attempt to commit a kept file.
  using Attempt = std::function<void(const codec::Result<void>& done)>;
  /// Called for a file of which not everything could be committed, with the reason.
  using Lost = std::function<void(WriteBack& file, const codec::Error& reason)>;

  explicit Flusher(WriteBackShared& shared) : shared_(shared) {}
  ~Flusher() { stop(); }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  void start();
  /// Ends the thread; dirty data stay dirty.
  void stop();
  void add(const std::shared_ptr<WriteBack>& file);
  /// Keeps the file, and what `attempt` owns, until let_go(). REQUIRES: add() was called for the file.
  void keep(const std::shared_ptr<WriteBack>& file, Attempt attempt);
  void let_go(const std::shared_ptr<WriteBack>& file);
  /// Wakes the thread because much is dirty.
  void wake();
  /// Wakes the thread because a clean file has become dirty, or files can be removed. May be called under the file's
  /// lock.
  void note_work();
  /// Commits the largest files, in the calling thread, until at most `most` bytes are dirty.
  void commit_largest(std::uint64_t most);
  /// Commits the files that are due, as the thread does periodically. Public for tests, which set the clock.
  void commit_due();
  /// Commits everything durably and releases all files. What cannot be committed is lost.
  void commit_all(const Lost& lost);

 private:
  struct Entry {
    std::weak_ptr<WriteBack> file;
    std::shared_ptr<WriteBack> kept;  // set together with `attempt`; null: programs have the file open
    Attempt attempt;
    Time not_before{};                   // earliest retry after a failed commit
    std::chrono::milliseconds pause{0};  // 0: the last commit has not failed
  };
  struct Work {
    std::shared_ptr<WriteBack> file;
    Attempt attempt;  // empty: the file is not kept
  };

  void run();
  /// Sleeps until there may be work. Returns false if the thread must end.
  bool pause(bool& much);
  /// Returns whether files can be removed, or a file is dirty or kept, so that ages must be checked periodically.
  bool has_work();
  std::vector<Work> files(Time now);
  std::vector<Work> due_files();
  void note(const Work& work, const codec::Result<void>& done);

  WriteBackShared& shared_;
  codec::Mutex mutex_;
  codec::CondVar woken_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool over_limit_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> sleeps_{false};  // true while the thread sleeps, or is about to, until there is work
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace cframefs::fs
