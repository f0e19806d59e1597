// A pool of threads for background tasks: decoding ahead, encoding, and memory management.
//
// Tasks start in the order in which they were posted, each on one thread; a task that throws std::bad_alloc ends early.
// The daemon calls start() after it has gone to the background. Thread safety: all members; stop() waits for running
// tasks and discards the rest.
#pragma once

#include <deque>
#include <functional>
#include <thread>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class WorkerPool {
 public:
  WorkerPool() = default;
  ~WorkerPool() { stop(); }
  WorkerPool(const WorkerPool&) = delete;
  WorkerPool& operator=(const WorkerPool&) = delete;

  /// `begin`: called first in each thread; may be empty.
  void start(unsigned threads, const std::function<void()>& begin = {});
  void stop();
  /// Ignored before start() and after stop(). Throws std::bad_alloc without memory; the task is not posted then.
  void post(std::function<void()> task);

 private:
  void run();

  codec::Mutex mutex_;
  codec::CondVar posted_;
  std::deque<std::function<void()>> tasks_ GUARDED_BY(mutex_);
  bool running_ GUARDED_BY(mutex_) = false;
  std::vector<std::thread> threads_;
};

}  // namespace cframefs::fs
