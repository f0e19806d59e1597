#include "fs/service_loop.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <optional>
#include <thread>

#include <poll.h>
#include <sched.h>

#include "fs/fuse_requests.h"

namespace cframefs::fs {

struct ServiceLoop::Worker {
  std::atomic<bool> waits{false};   // in read(2), or about to
  std::optional<pthread_t> thread;  // while it serves; guarded by ServiceLoop::mutex_
  fuse_buf request{};
};

ServiceLoop::ServiceLoop(fuse_session* session, unsigned threads)
    : session_(session), lone_(std::thread::hardware_concurrency() > 1) {
  for (unsigned i = 0; i < threads; ++i)
    workers_.push_back(std::make_unique<Worker>());
}

ServiceLoop::~ServiceLoop() {
  for (const auto& worker : workers_)
    std::free(worker->request.mem);  // libfuse's
}

codec::Result<void> ServiceLoop::run() {
  // Signals that end the session are for any other thread: calls of those that serve are not to be interrupted. SIGUSR1
  // is let through even if it was blocked.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGUSR1);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGABRT})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  std::vector<std::thread> others;
  for (std::size_t i = 1; i < workers_.size(); ++i)
    others.emplace_back([this, i] { work(static_cast<int>(i)); });
  work(0);
  for (std::thread& other : others)
    other.join();
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fuse_session_reset(session_);
  if (failed_ != 0) return codec::io_error(failed_, "serve");
  return {};
}

void ServiceLoop::interrupt() {
  wake_all();
  call_others(-1);
}

void ServiceLoop::work(int who) {
  Worker& worker = *workers_[static_cast<std::size_t>(who)];
  {
    codec::MutexLock lock(mutex_);
    worker.thread = pthread_self();
  }
  serve_requests(worker, who);
  {
    codec::MutexLock lock(mutex_);
    worker.thread.reset();
  }
  // What made this one leave is for all of them.
  fuse_session_exit(session_);
  wake_all();
}

void ServiceLoop::serve_requests(Worker& worker, int who) {
  while (fuse_session_exited(session_) == 0) {
    if (lone_.stands_aside(who)) {
      stand_aside(who);
      continue;
    }
    bool waited = false;
    if (lone_.serves_alone(who) && !look(waited) && lone_.paused(who)) wake_all();
    worker.waits = true;
    if (lone_.stands_aside(who) || fuse_session_exited(session_) != 0) {
      worker.waits = false;
      continue;
    }
    const int got = fuse_session_receive_buf(session_, &worker.request);
    worker.waits = false;
    if (got == -EINTR || got == -EAGAIN) continue;
    if (got < 0) failed_ = -got;
    if (got <= 0) return;
    const LoneServer::Time taken_at = LoneServer::Clock::now();
    if (lone_.taken(who, taken_at, waited)) call_others(who);
    fuse_session_process_buf(session_, &worker.request);
    if (lone_.answered(who, taken_at, LoneServer::Clock::now())) wake_all();
  }
}

bool ServiceLoop::look(bool& waited) const {
  pollfd request{fuse_session_fd(session_), POLLIN, 0};
  waited = poll(&request, 1, 0) != 0;
  if (waited) return true;
  const LoneServer::Time end = LoneServer::Clock::now() + LoneServer::kPause;
  do {
    // The processor may be wanted by the very program that asks.
    sched_yield();
    if (poll(&request, 1, 0) != 0) return true;
  } while (LoneServer::Clock::now() < end);
  return false;
}

void ServiceLoop::stand_aside(int who) {
  bool overdue = false;
  {
    codec::MutexLock lock(mutex_);
    bool watches = false;
    while (!overdue && lone_.stands_aside(who) && fuse_session_exited(session_) == 0) {
      if (!watched_) watches = watched_ = true;
      if (watches) {
        ended_.wait_for(mutex_, LoneServer::kOverdue);
        overdue = lone_.ends_overdue(LoneServer::Clock::now());
      } else {
        ended_.wait(mutex_);
      }
    }
    if (watches) watched_ = false;
  }
  if (overdue) wake_all();
}

void ServiceLoop::call_others(int who) {
  codec::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = *workers_[i];
    if (static_cast<int>(i) != who && worker.thread && worker.waits) pthread_kill(*worker.thread, SIGUSR1);
  }
}

void ServiceLoop::wake_all() {
  // Who is about to wait has looked while it held the mutex.
  codec::MutexLock lock(mutex_);
  ended_.notify_all();
}

}  // namespace cframefs::fs
