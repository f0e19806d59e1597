// Threads that decode ahead of sequential readers.
//
// Tasks run in the order they were posted, each on one thread; one that runs out of memory (std::bad_alloc) ends early.
// Threads start with start(), which the daemon calls after it has gone to the background. Thread safety: all members;
// stop() waits for running tasks and drops the rest.
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

  void start(unsigned threads);
  void stop();
  /// Without memory it throws std::bad_alloc, and nothing is posted. Ignored after stop() and before start().
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
