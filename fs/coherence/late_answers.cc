#include "fs/coherence/late_answers.h"

#include <algorithm>
#include <utility>

namespace cframefs::fs {
namespace {

// As long as the kernel keeps attributes by default.
constexpr std::chrono::seconds kLongestWait{60};
constexpr std::chrono::milliseconds kFirstPause{1};
constexpr std::chrono::milliseconds kLongestPause{64};

}  // namespace

void LateAnswers::start(KernelInvalidator& kernel) {
  codec::MutexLock lock(mutex_);
  kernel_ = &kernel;
  running_ = true;
}

void LateAnswers::stop() {
  std::thread thread;
  {
    codec::MutexLock lock(mutex_);
    running_ = false;
    thread_.swap(thread);
    changed_.notify_all();
  }
  if (thread.joinable()) thread.join();
}

void LateAnswers::forget(NodeId node) {
  if (is_forgotten(node)) return;
  codec::MutexLock lock(mutex_);
  if (!running_) return;
  waiting_.insert_or_assign(node, Clock::now() + kLongestWait);
  if (!thread_.joinable()) thread_ = std::thread([this] { run(); });
  changed_.notify_all();
}

bool LateAnswers::is_forgotten(NodeId node) {
  return kernel_->forget_attributes(node) || !nodes_.find(node);
}

void LateAnswers::run() {
  auto pause = kFirstPause;
  codec::MutexLock lock(mutex_);
  while (running_) {
    if (waiting_.empty()) {
      changed_.wait(mutex_);
      pause = kFirstPause;
      continue;
    }
    changed_.wait_for(mutex_, pause);
    pause = std::min(2 * pause, kLongestPause);
    for (auto next = waiting_.begin(); running_ && next != waiting_.end();) {
      const auto [node, end] = *next;
      mutex_.unlock();
      const bool is_done = is_forgotten(node);
      mutex_.lock();
      // Another thread may have added nodes meanwhile; only this one removes them.
      next = is_done || Clock::now() > end ? waiting_.erase(waiting_.find(node)) : std::next(waiting_.find(node));
    }
  }
}

}  // namespace cframefs::fs
