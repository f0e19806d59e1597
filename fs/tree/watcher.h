// Watches the source for changes by other programs, so that the kernel may cache names and attributes.
//
// There is one inotify watch for each directory that the kernel has looked into. watch() returns false for a directory
// that cannot be watched (the limit on watches, a filesystem without events), and the kernel then caches nothing of it.
// A thread of its own reports changes: a single one at once, those that follow it closely in one batch each
// kBatchInterval, so that a program that makes many does not wait for as many reports. The thread holds no lock during
// a report, because the kernel may block the reporter until requests in progress are answered.
//
// The system queues an event before the call that changed something returns. So a thread that calls catch_up() knows
// from WatchedNames all changes of names that any program has finished, in directories that no other machine changes.
//
// Thread safety: all members but start() and stop() may be called concurrently. Lock order: order_, mutex_, that of
// WatchedNames. Ownership: the reporter must outlive the watcher.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "fs/tree/watched_names.h"

namespace cframefs::fs {

class Watcher {
 public:
  struct Change {
    std::uint64_t directory = 0;  // the number that watch() was given
    std::string name;             // in that directory; empty: the directory itself
    bool entry = false;           // the name was created or removed, or now refers to another file
    bool everything = false;      // events were lost: anything may have changed
    bool is_repeated = false;     // the batch has reported another change in the directory
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
  /// Tells the names all changes that are reported so far. Changes are still reported by the watcher's thread.
  void catch_up() EXCLUDES(order_, mutex_);
  /// Returns true if the directory is known to have no entry `name` on disk now.
  bool lacks(std::uint64_t directory, const std::string& name);
  /// Returns the number of changes of entries that were reported, counted before the report: an answer that tells of a
  /// name, and during which the number has changed, may be of the state before.
  std::uint64_t name_changes() const { return name_changes_.load(); }
  /// Returns the names in the watched directories.
  WatchedNames& names() { return names_; }

 private:
  using Clock = std::chrono::steady_clock;
  // By place, whether the name changed. A program that writes a file causes one event for each write.
  using Changes = std::map<std::pair<std::uint64_t, std::string>, bool>;

  bool is_usable() const { return inotify_ >= 0 && wake_ >= 0 && taken_ >= 0; }
  void run();
  /// Waits for events or for changes that catch_up() has taken.
  void wait_for_changes() EXCLUDES(mutex_);
  /// Returns early if the watcher is stopped.
  void pause_until(Clock::time_point time) const;
  void report() EXCLUDES(mutex_);
  void report_loss() {
    ++name_changes_;
    reporter_(Change{0, "", false, true, false});
  }
  void take_events(std::size_t length) REQUIRES(order_) EXCLUDES(mutex_);
  void take_event(std::size_t at) REQUIRES(order_, mutex_);
  void lose_track() EXCLUDES(mutex_);

  const Reporter reporter_;
  WatchedNames names_;
  int inotify_ = -1;
  int wake_ = -1;   // written to when the watcher stops
  int taken_ = -1;  // written to when catch_up() has taken events while the thread waits for them
  std::atomic<bool> stopping_{false};
  std::atomic<std::uint64_t> name_changes_{0};
  std::thread thread_;
  codec::Mutex order_;  // held from the read of events until the names know them
  std::vector<char> buffer_ GUARDED_BY(order_);
  codec::Mutex mutex_;
  std::unordered_map<int, std::uint64_t> directories_ GUARDED_BY(mutex_);  // by watch descriptor
  std::unordered_map<std::uint64_t, int> watches_ GUARDED_BY(mutex_);
  Changes changes_ GUARDED_BY(mutex_);  // not reported yet
  bool has_lost_changes_ GUARDED_BY(mutex_) = false;
  bool is_waiting_ GUARDED_BY(mutex_) = false;  // the thread, for events
};

}  // namespace cframefs::fs
