// The threads that take requests from the kernel, answer them, and take the next: as libfuse's own loop, but one of
// them serves alone where that is faster (fs/fuse/busy_poll_policy.h), and others take the place of those whose
// requests take long (fs/fuse/service_roster.h).
//
// A further thread looks after them: every 2 ms while requests are answered, and not at all while there is none.
//
// Thread safety: run() once; interrupt() by any other thread meanwhile, while SIGUSR1 is caught. Ownership: borrows the
// session, which must outlive it. Errors: io.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include <pthread.h>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/fuse/busy_poll_policy.h"
#include "fs/fuse/service_roster.h"

struct fuse_session;

namespace cframefs::fs {

class ServiceLoop {
 public:
  /// `threads`: how many take requests, 1 or more. `most`: with those whose requests take long. `relieve`: called by
  /// any of them when there is no memory to receive a request; it is to let go what is kept only for speed.
  ServiceLoop(fuse_session* session, unsigned threads, unsigned most, std::function<void()> relieve);
  ~ServiceLoop();
  ServiceLoop(const ServiceLoop&) = delete;
  ServiceLoop& operator=(const ServiceLoop&) = delete;

  /// Until the mount is gone, or the session is told to exit and the threads are interrupted.
  codec::Result<void> run();
  /// Has the threads that wait for a request see whether the session is to exit. One that is about to wait may miss it,
  /// so it is to be repeated until run() has returned.
  void interrupt();

 private:
  class Receiver;
  struct Worker;

  bool start(int who);
  void work(int who);
  void serve_requests(Worker& worker, int who);
  bool take_and_answer(Worker& worker, int who, bool waited);
  /// Of one who serves alone: whether a request has come, and whether it was there at once.
  bool look(bool& waited) const;
  /// Until no thread serves alone, or one that does takes too long.
  void stand_aside(int who);
  /// Until the thread is called, or the session exits.
  void be_spare(Worker& worker, int who);
  /// Of the thread that looks after the others.
  void look_after();
  void wake_to_look_after();
  void kick_others(int who);
  void wake_all();

  fuse_session* const session_;
  const std::function<void()> relieve_;
  BusyPollPolicy busy_poll_;
  ServiceRoster roster_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int> failed_{0};       // errno
  std::atomic<bool> sleeps_{false};  // the thread that looks after the others, until a request is taken
  codec::Mutex mutex_;
  codec::CondVar changed_;  // who serves: for those that stand aside and those that are spare
  codec::CondVar taken_;    // a request was, while the thread that looks after the others sleeps
};

}  // namespace cframefs::fs
