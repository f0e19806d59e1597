// Commits what has been dirty for too long, or is too much, from a thread of its own.
//
// Thread safety: all members may be called at once. Ownership: knows the write-backs weakly. Errors: the write-back
// keeps what could not be committed, and tells the next fsync or close.
#pragma once

#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "codec/mutex.h"
#include "fs/write_back.h"

namespace cframefs::fs {

class Flusher {
 public:
  /// `interval`: bound on the age of what is not committed.
  explicit Flusher(std::chrono::milliseconds interval) : interval_(interval) {}
  ~Flusher() { stop(); }
  Flusher(const Flusher&) = delete;
  Flusher& operator=(const Flusher&) = delete;

  void start();
  /// Ends the thread; what is dirty stays so.
  void stop();
  void add(const std::shared_ptr<WriteBack>& file);
  /// There is much to commit.
  void wake();
  /// Commits everything, durably.
  void commit_all();

 private:
  using Files = std::vector<std::shared_ptr<WriteBack>>;

  void run();
  void commit_due(bool much);
  Files files();

  const std::chrono::milliseconds interval_;
  codec::Mutex mutex_;
  codec::Condition woken_;
  bool running_ GUARDED_BY(mutex_) = false;
  bool much_ GUARDED_BY(mutex_) = false;
  std::vector<std::weak_ptr<WriteBack>> files_ GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace cframefs::fs
