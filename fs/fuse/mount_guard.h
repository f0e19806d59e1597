// A small process that ends a mount whose daemon was killed, and does for a daemon in its sandbox what that may not do.
//
// A daemon that dies (kill -9, a crash, out of memory) may leave a thread blocked in the kernel on a page that a reader
// has locked, while the reader waits for an answer that no thread gives. Such a process and its readers never end. The
// guard has no descriptor of the mount. It notices the daemon's end, aborts the connection, so that all of them get an
// error, and unmounts.
//
// How the guard notices: one thread of the daemon has its own table of descriptors, which contains only the writing end
// of a pipe. The thread only waits in killable calls, so the pipe ends with the daemon even if other threads are
// blocked. Before a core dump, which waits for those threads, a signal handler sends the guard a message.
//
// Thread safety: start(), mounted() and watch() before other threads; release_readers() and the requests by any thread;
// dismiss() once, when no other thread uses the guard.
// Ownership: the guard ends by itself; it is not a child of the daemon. Errors: the mount works without a guard, so
// callers may go on.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <pthread.h>
#include <sys/stat.h>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/fuse/guard_messages.h"
#include "fs/fuse/guard_process.h"
#include "fs/util/log.h"
#include "fs/util/mount_info.h"
#include "fs/util/unmount.h"

namespace cframefs::fs {

class MountGuard {
 public:
  MountGuard() = default;
  ~MountGuard();
  MountGuard(const MountGuard&) = delete;
  MountGuard& operator=(const MountGuard&) = delete;

  /// Starts the guard's process. REQUIRES: no thread runs and nothing is mounted yet. `mountpoint`: resolved.
  /// Relative paths of the duties are those of now.
  codec::Result<void> start(const std::string& mountpoint, GuardDuties duties);
  /// Sends the guard the mount to guard.
  void mounted(const MountIdentity& mount) const;
  /// Called in the serving process: from now on the guard ends the mount when this process ends.
  void watch();
  /// Called in a process that leaves the mount to its child: closes the connections to the guard.
  void leave();
  /// Makes the guard abort the connection now, which unblocks threads of the daemon in the kernel.
  void release_readers() const;
  /// Ends the guard after the mount has ended normally.
  void dismiss();

  // Requests to the guard's process, which is outside of the sandbox. Each waits for the answer, at most 10 seconds.
  /// Unmounts the mount. Returns true if it is unmounted.
  bool unmount(Unmounting how);
  /// Returns a new descriptor of the file for lines of the log. It belongs to the caller.
  codec::Result<int> open_log();
  /// Returns a new descriptor of one of the files of the duties, for reading. It belongs to the caller. io EACCES for
  /// another path.
  codec::Result<int> open_file(const std::string& path);
  /// Returns what GuardDuties::run_program returns, a minute later at most.
  codec::Result<std::string> run_program();
  /// As frame::only_readers_lock(); false also if the guard does not answer.
  bool only_readers_lock(const struct stat& file);

 private:
  struct Answered {
    GuardAnswer answer;
    int descriptor = -1;
  };
  std::optional<Answered> ask(GuardMessage request);
  codec::Result<int> ask_for_descriptor(const GuardMessage& request, const std::string& doing);
  std::optional<Answered> receive(std::uint64_t number) const REQUIRES(request_mutex_);

  static void* hold_life(void* self);
  void wait_for_end();
  void close_ends();

  int messages_ = -1;               // a socket to the guard
  int life_ = -1;                   // the writing end of a pipe; later only in the table of the thread
  std::vector<std::string> files_;  // of the duties, as the caller spells them
  codec::Mutex request_mutex_;      // one request at a time
  std::uint64_t requests_ GUARDED_BY(request_mutex_) = 0;
  codec::Mutex mutex_;
  codec::CondVar changed_;
  bool waits_ GUARDED_BY(mutex_) = false;      // the thread waits for the end
  bool has_table_ GUARDED_BY(mutex_) = false;  // the thread has its own table of descriptors
  bool ended_ GUARDED_BY(mutex_) = false;
  bool has_thread_ = false;
  pthread_t thread_{};
};

}  // namespace cframefs::fs
