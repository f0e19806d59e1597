// Watches the source for changes by other programs, so that the kernel may cache names and attributes.
//
// There is one inotify watch for each directory that the kernel has looked into. watch() returns false for a directory
// that cannot be watched (the limit on watches, a filesystem without events), and the kernel then caches nothing of it.
// A thread of its own reports changes: a single one at once, those that follow it closely in one batch each
// kBatchInterval, so that a program that makes many does not wait for as many reports. The thread holds no lock during
// a report, because the kernel may block the reporter until requests in progress are answered.
//
// Thread safety: watch() and forget() may be called concurrently. Ownership: the reporter must outlive the watcher.
#pragma once

#include <atomic>
#include <chrono>
#include <functional>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/io/file_ops.h"

namespace cframefs::fs {

class Watcher {
 public:
  struct Change {
    std::uint64_t directory = 0;  // the number that watch() was given
    std::string name;             // in that directory; empty: the directory itself
    bool entry = false;           // the name was created or removed, or now refers to another file
    bool everything = false;      // events were lost: anything may have changed
  };
  using Reporter = std::function<void(const Change&)>;
  static constexpr std::chrono::milliseconds kBatchInterval{2};

  explicit Watcher(Reporter reporter);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void start();
  void stop();
  /// Watches the open directory `fd` and reports it as `directory`. Returns false if the directory cannot be watched.
  bool watch(int fd, std::uint64_t directory);
  void forget(std::uint64_t directory);

 private:
  using Clock = std::chrono::steady_clock;

  void run(std::vector<char>& buffer);
  /// Returns early if the watcher is stopped.
  void pause_until(Clock::time_point time) const;
  void report(const char* events, std::size_t length);

  const Reporter reporter_;
  int inotify_ = -1;
  int wake_ = -1;
  std::atomic<bool> stopping_{false};
  std::thread thread_;
  codec::Mutex mutex_;
  std::unordered_map<int, std::uint64_t> directories_ GUARDED_BY(mutex_);  // by watch descriptor
  std::unordered_map<std::uint64_t, int> watches_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
