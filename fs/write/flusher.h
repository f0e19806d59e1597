// Commits what has been dirty for too long, or is too much, from a thread of its own, and keeps what cannot be
// committed yet.
//
// A commit that fails (a lock that another program holds, a full disk) is tried again after a pause that grows. A file
// that the last program has closed meanwhile is kept here with what was written to it, until that is committed, or can
// never be, or the mount ends. No file waits for another one's locks. While nothing is dirty the thread sleeps without
// a timeout.
//
// Thread safety: all members may be called at once. Lock order: `mutex_` is held over no call. Ownership: knows the
// write-backs weakly, but for those that it keeps. Errors: the write-back keeps what could not be committed, and tells
// the next fsync or close.
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
  /// Told how the last attempt to commit a file that is kept went.
  using Attempt = std::function<void(const codec::Result<void>& done)>;
  /// Told of a file of which not everything could be committed, and why.
  using Lost = std::function<void(WriteBack& file, const codec::Error& reason)>;

  explicit Flusher(WriteBackShared& shared) : shared_(shared) {}
  ~Flusher() { stop(); }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  void start();
  /// Ends the thread; what is dirty stays so.
  void stop();
  void add(const std::shared_ptr<WriteBack>& file);
  /// Keeps the file, and what `attempt` holds, until let_go(). REQUIRES: add() knows the file.
  void keep(const std::shared_ptr<WriteBack>& file, Attempt attempt);
  void let_go(const std::shared_ptr<WriteBack>& file);
  /// There is much to commit.
  void wake();
  /// A file that was clean has something to commit. May be called under the file's lock.
  void note_dirty();
  /// Commits the largest files, from the caller's thread, until no more than `most` bytes are dirty.
  void commit_largest(std::uint64_t most);
  /// Commits what is due, as the thread does every so often. Public for tests, which turn the clock.
  void commit_due();
  /// Commits everything, durably, and lets go of all files. What cannot be committed now never will be.
  void commit_all(const Lost& lost);

 private:
  struct Entry {
    std::weak_ptr<WriteBack> file;
    std::shared_ptr<WriteBack> kept;  // and `attempt`; null: programs have it open
    Attempt attempt;
    Time not_before{};                   // after a commit that failed
    std::chrono::milliseconds pause{0};  // none has
  };
  struct Work {
    std::shared_ptr<WriteBack> file;
    Attempt attempt;  // empty: it is not kept
  };

  void run();
  /// Until there may be something to do. False: the thread is to end.
  bool pause(bool& much);
  /// Whether a file's age is to be looked at every so often.
  bool is_any_dirty();
  std::vector<Work> files(Time now);
  std::vector<Work> due_files();
  void note(const Work& work, const codec::Result<void>& done);

  WriteBackShared& shared_;
  codec::Mutex mutex_;
  codec::CondVar woken_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool over_limit_ GUARDED_BY(mutex_) = false;
  std::atomic<bool> sleeps_{false};  // or is about to, until something becomes dirty
  std::vector<Entry> entries_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace cframefs::fs
