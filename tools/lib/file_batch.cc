#include "tools/lib/file_batch.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <thread>

#include "codec/base/mutex.h"

namespace cframefs::tools {

namespace {

constexpr std::uint64_t kLargeFile = std::uint64_t{16} << 20;
constexpr auto kIdleInterval = std::chrono::milliseconds(200);

class Runner {
 public:
  Runner(const FileBatch& batch, const std::atomic<bool>& stop, unsigned threads)
      : batch_(batch), stop_(stop), running_(threads), done_(batch.sizes.size()) {}

  /// Processes files until there are no more.
  void work() {
    while (const auto file = claim()) {
      if (batch_.sizes[*file] >= kLargeFile) {
        codec::MutexLock alone(large_);
        batch_.run(*file, batch_.workers);
      } else {
        batch_.run(*file, 1);
      }
      finish(*file);
    }
    codec::MutexLock lock(mutex_);
    --running_;
    progressed_.notify_all();
  }

  /// Delivers results until all threads have ended.
  void deliver_all() {
    for (std::size_t next = 0;;) {
      bool ended = false;
      std::size_t end = next;
      {
        codec::MutexLock lock(mutex_);
        if (running_ > 0 && !is_done(next)) progressed_.wait_for(mutex_, kIdleInterval);
        while (is_done(end))
          ++end;
        ended = running_ == 0;
      }
      for (; next < end; ++next)
        batch_.deliver(next);
      batch_.idle();
      if (ended) return;
    }
  }

 private:
  /// Returns the next file; none if there is no other, or if the program is to stop.
  std::optional<std::size_t> claim() {
    codec::MutexLock lock(mutex_);
    if (stop_.load() || claimed_ == done_.size()) return std::nullopt;
    return claimed_++;
  }

  void finish(std::size_t file) {
    codec::MutexLock lock(mutex_);
    done_[file] = true;
    progressed_.notify_all();
  }

  bool is_done(std::size_t file) const REQUIRES(mutex_) { return file < done_.size() && done_[file]; }

  const FileBatch& batch_;
  const std::atomic<bool>& stop_;
  codec::Mutex large_;  // held while a large file is processed; taken before mutex_
  codec::Mutex mutex_;
  codec::CondVar progressed_;
  std::size_t claimed_ GUARDED_BY(mutex_) = 0;
  unsigned running_ GUARDED_BY(mutex_);
  std::vector<bool> done_ GUARDED_BY(mutex_);
};

}  // namespace

void run_batch(const FileBatch& batch, const std::atomic<bool>& stop) {
  const auto threads = static_cast<unsigned>(std::min<std::size_t>(std::max(batch.workers, 1U), batch.sizes.size()));
  Runner runner(batch, stop, threads);
  std::vector<std::thread> running;
  for (unsigned i = 0; i < threads; ++i)
    running.emplace_back([&runner] { runner.work(); });
  runner.deliver_all();
  for (std::thread& thread : running)
    thread.join();
}

}  // namespace cframefs::tools
