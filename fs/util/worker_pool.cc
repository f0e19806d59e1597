#include "fs/util/worker_pool.h"

#include <utility>

#include "fs/util/no_memory.h"

namespace cframefs::fs {

void WorkerPool::start(unsigned threads, const std::function<void()>& begin) {
  {
    codec::MutexLock lock(mutex_);
    running_ = true;
  }
  for (unsigned i = 0; i < threads; ++i)
    threads_.emplace_back([this, begin] {
      if (begin) begin();
      run();
    });
}

void WorkerPool::stop() {
  {
    codec::MutexLock lock(mutex_);
    running_ = false;
    tasks_.clear();
  }
  posted_.notify_all();
  for (std::thread& thread : threads_)
    thread.join();
  threads_.clear();
}

void WorkerPool::post(std::function<void()> task) {
  {
    codec::MutexLock lock(mutex_);
    if (!running_) return;
    tasks_.push_back(std::move(task));
  }
  posted_.notify_one();
}

void WorkerPool::run() {
  for (;;) {
    std::function<void()> task;
    {
      codec::MutexLock lock(mutex_);
      while (running_ && tasks_.empty())
        posted_.wait(mutex_);
      if (!running_) return;
      task = std::move(tasks_.front());
      tasks_.pop_front();
    }
    // A task that runs out of memory ends here; the destructors of what it owns notify the threads that wait for it.
    try_in_memory(task);
  }
}

}  // namespace cframefs::fs
