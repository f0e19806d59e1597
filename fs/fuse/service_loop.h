// The service threads: each takes a request from the kernel, answers it, and takes the next. Differs from libfuse's
// loop in two ways: one thread serves alone where that is faster (fs/fuse/busy_poll_policy.h), and spare threads
// replace those whose requests are slow (fs/fuse/service_roster.h).
//
// A supervisor thread examines the service threads every 2 ms while requests are being answered, and sleeps otherwise,
// but for the steps of an idle mount (fs/fuse/idle_schedule.h).
//
// Thread safety: run() once; interrupt() by any other thread while run() is active and SIGUSR1 is caught. Ownership:
// borrows the session, which must outlive it. Errors: io.
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
#include "fs/fuse/idle_schedule.h"
#include "fs/fuse/service_roster.h"

struct fuse_session;

namespace cframefs::fs {

class ServiceLoop {
 public:
  /// `threads`: how many take requests, 1 or more. `most`: how many exist, including those whose requests are slow.
  /// `relieve`: called by any of them when there is no memory to receive a request; frees memory kept only for speed.
  /// `on_idle`: called by the supervisor with the steps that are due; must not wait.
  /// `on_end`: called by run() once no more requests are taken, before it waits for those that are being answered.
  ServiceLoop(fuse_session* session, unsigned threads, unsigned most, std::function<void()> relieve, IdleLimits limits,
              std::function<void(const IdleSchedule::Due&)> on_idle, std::function<void()> on_end = {});
  ~ServiceLoop();
  ServiceLoop(const ServiceLoop&) = delete;
  ServiceLoop& operator=(const ServiceLoop&) = delete;

  /// Serves until the mount is gone, or until the session exits and interrupt() has woken the threads.
  codec::Result<void> run();
  /// Wakes the threads that wait for a request, so that they check whether the session exits. A thread that is about to
  /// wait may miss the call, so the caller repeats it until run() has returned.
  void interrupt();

 private:
  class Receiver;
  struct Worker;

  bool start(int thread);
  void work(int thread);
  void serve_requests(Worker& worker, int thread);
  bool take_and_answer(Worker& worker, int thread, bool was_queued);
  /// Polls for a request, as the leader. Returns true if one has come; sets `was_queued` if it was already pending.
  bool poll_for_request(bool& was_queued);
  /// Waits until no other thread is the leader, or the session exits.
  void stand_aside(int thread);
  /// Waits until the roster calls the thread, or the session exits.
  void be_spare(Worker& worker, int thread);
  /// The supervisor's loop.
  void supervise();
  /// Waits for a request, and carries out the steps of an idle mount until then.
  void sleep_until_request() REQUIRES(mutex_);
  void wake_supervisor();
  /// Lets other threads take requests while this one waits for the disk.
  void give_way(int thread);
  void kick_others(int thread);
  /// Wakes the supervisor and the parked threads; the spare ones, too, if the session exits.
  void wake_all();

  fuse_session* const session_;
  const std::function<void()> relieve_;
  const std::function<void(const IdleSchedule::Due&)> on_idle_;
  const std::function<void()> on_end_;
  BusyPollPolicy busy_poll_;
  ServiceRoster roster_;
  std::vector<std::unique_ptr<Worker>> workers_;
  std::atomic<int> failed_{0};       // errno
  std::atomic<bool> sleeps_{false};  // the supervisor sleeps until a request is taken
  codec::Mutex mutex_;
  IdleSchedule idle_ GUARDED_BY(mutex_);
  codec::CondVar changed_;  // parked threads wait for the end of a leadership
  codec::CondVar taken_;    // the supervisor waits for a request to be taken
};

}  // namespace cframefs::fs
