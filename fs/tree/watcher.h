// Notices changes of backing files made behind the mount, so that the kernel need not ask before each use of a name.
//
// One inotify watch for each directory that the kernel has looked into. A directory that cannot be watched (the limit
// on watches, a filesystem that does not tell) is simply not: watch() says so, and the kernel is then told to ask every
// time. Changes are reported from a thread of its own, which holds no lock meanwhile: the kernel may make the reporter
// wait for requests that are being served.
//
// Thread safety: watch() and forget() may be called at once. Ownership: the reporter must outlive the watcher.
#pragma once

#include <atomic>
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
    bool entry = false;           // the name came, went, or now means another file
    bool everything = false;      // the system has lost track: anything may have changed
  };
  using Reporter = std::function<void(const Change&)>;

  explicit Watcher(Reporter reporter);
  ~Watcher();
  Watcher(const Watcher&) = delete;
  Watcher& operator=(const Watcher&) = delete;

  void start();
  void stop();
  /// Watches the open directory `fd`, to be reported as `directory`. False if it cannot be.
  bool watch(int fd, std::uint64_t directory);
  void forget(std::uint64_t directory);

 private:
  void run(std::vector<char>& buffer);
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
