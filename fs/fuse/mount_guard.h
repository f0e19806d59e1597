// A small process that ends a mount whose daemon was killed.
//
// A daemon that dies (kill -9, a crash, no memory) may leave a thread that the kernel has wait for a page which a
// reader has locked, while the reader waits for an answer that no thread gives. Such a process never ends, and its
// readers do not either. The guard, which has no descriptor of the mount, notices that the daemon is no more, aborts
// the connection, so that all of them get an error, and takes the mount away.
//
// How the guard notices: one thread of the daemon has a table of descriptors of its own, with nothing in it but the
// writing end of a pipe. The thread never waits for anything that cannot be killed, so the pipe ends with the daemon
// whatever its other threads wait for. Where the system would first write a core dump, which waits for those threads,
// a signal handler tells the guard.
//
// Thread safety: start(), mounted() and watch() before other threads; release_readers() by any thread; dismiss() once.
// Ownership: the guard ends by itself; it is no child of the daemon. Errors: without a guard the mount is as good as
// any, so callers may go on.
#pragma once

#include <string>

#include <pthread.h>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/util/mount_info.h"

namespace cframefs::fs {

class MountGuard {
 public:
  MountGuard() = default;
  ~MountGuard();
  MountGuard(const MountGuard&) = delete;
  MountGuard& operator=(const MountGuard&) = delete;

  /// Starts the guard's process. Before any thread and before the mount. `mountpoint`: resolved.
  codec::Result<void> start(const std::string& mountpoint);
  /// Tells the guard what to look after.
  void mounted(const MountIdentity& mount);
  /// In the process that is going to serve: the guard takes its end for the end of the mount.
  void watch();
  /// In a process that leaves the mount to a child: forgets the guard.
  void leave();
  /// Has the guard abort the connection now: the kernel keeps threads of the daemon waiting.
  void release_readers();
  /// The mount has ended in order, and so does the guard.
  void dismiss();

 private:
  static void* hold_life(void* self);
  void wait_for_end();
  void close_ends();

  int messages_ = -1;  // a socket to the guard
  int life_ = -1;      // the writing end of a pipe; later in the table of the thread alone
  codec::Mutex mutex_;
  codec::CondVar changed_;
  bool waits_ GUARDED_BY(mutex_) = false;      // the thread, for the end
  bool has_table_ GUARDED_BY(mutex_) = false;  // it has a table of descriptors of its own
  bool ended_ GUARDED_BY(mutex_) = false;
  bool has_thread_ = false;
  pthread_t thread_{};
};

}  // namespace cframefs::fs
