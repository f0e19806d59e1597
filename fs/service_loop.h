// The threads that take requests from the kernel, answer them, and take the next: as libfuse's own loop, but one of
// them serves alone where that is faster (fs/lone_server.h).
//
// Thread safety: run() once, by one thread, which becomes one of those that serve; interrupt() by any other meanwhile,
// while SIGUSR1 is caught. Ownership: borrows the session, which must outlive it. Errors: io.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include <pthread.h>

#include "codec/error.h"
#include "codec/mutex.h"
#include "fs/lone_server.h"

struct fuse_session;

namespace cframefs::fs {

class ServiceLoop {
 public:
  /// `threads`: 1 or more.
  ServiceLoop(fuse_session* session, unsigned threads);
  ~ServiceLoop();
  ServiceLoop(const ServiceLoop&) = delete;
  ServiceLoop& operator=(const ServiceLoop&) = delete;

  /// Until the mount is gone, or the session is told to exit and the threads are interrupted.
  codec::Result<void> run();
  /// Has the threads that wait for a request see whether the session is to exit. One that is about to wait may miss it,
  /// so it is to be repeated until run() has returned.
  void interrupt();

 private:
  struct Worker;

  void work(int who);
  void serve_requests(Worker& worker, int who);
  /// Of one who serves alone: whether a request has come, and whether it was there at once.
  bool look(bool& waited) const;
  /// Until nobody serves alone, or one who does takes too long.
  void stand_aside(int who);
  void call_others(int who);
  void wake_all();

  fuse_session* const session_;
  LoneServer lone_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int> failed_{0};  // errno
  codec::Mutex mutex_;
  codec::Condition ended_;
  bool watched_ GUARDED_BY(mutex_) = false;  // one of those who stand aside looks for answers that take long
};

}  // namespace cframefs::fs
