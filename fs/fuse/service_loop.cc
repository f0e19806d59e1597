#include "fs/fuse/service_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sched.h>

#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/pending_request.h"

namespace cframefs::fs {

namespace {

// So long there must be no request before the thread that looks after the others sleeps.
constexpr int kQuietLooks = 50;
// How often the callers of requests that take long are looked at.
constexpr std::chrono::milliseconds kExamination{20};
// The pause of a thread that has no memory to receive a request; libfuse logs each attempt.
constexpr std::chrono::milliseconds kShortage{100};

}  // namespace

/// Where a thread receives requests: memory for the largest one, of which the thread needs little while it answers a
/// small one. If that takes long, another thread gives the memory back.
///
///   used ──set_aside()──▶ idle ──free_idle()──▶ (being freed) ──▶ freed
///    ▲                     │                                        │
///    └─────────────────── take_back() ──────────────────────────────┘
class ServiceLoop::Receiver {
 public:
  ~Receiver() { std::free(memory_.mem); }

  /// Receives a request, as libfuse does. Returns its bytes, 0 or an errno, negative.
  int receive(fuse_session* session) {
    take_back();
    const int got = fuse_session_receive_buf(session, &memory_);
    request_ = &memory_;
    if (got <= 0 || static_cast<std::size_t>(got) > small_.size() || (memory_.flags & FUSE_BUF_IS_FD) != 0) return got;
    std::memcpy(small_.data(), memory_.mem, static_cast<std::size_t>(got));
    copy_ = fuse_buf{};
    copy_.mem = small_.data();
    copy_.size = static_cast<std::size_t>(got);
    request_ = &copy_;
    state_.store(State::idle, std::memory_order_release);
    return got;
  }
  const fuse_buf* request() const { return request_; }
  /// Gives the memory back. By the thread itself, between requests.
  void give_back() {
    take_back();
    std::free(memory_.mem);  // libfuse's
    memory_ = fuse_buf{};
  }
  /// Gives the memory back unless it is in use. By any other thread.
  void free_idle() {
    State idle = State::idle;
    if (!state_.compare_exchange_strong(idle, State::being_freed)) return;
    std::free(memory_.mem);
    memory_ = fuse_buf{};
    state_.store(State::freed, std::memory_order_release);
  }

 private:
  enum class State : unsigned char { used, idle, being_freed, freed };

  void take_back() {
    State idle = State::idle;
    if (state_.compare_exchange_strong(idle, State::used)) return;
    while (state_.load(std::memory_order_acquire) == State::being_freed)
      std::this_thread::yield();
    state_.store(State::used, std::memory_order_relaxed);
  }

  std::atomic<State> state_{State::used};
  fuse_buf memory_{};
  fuse_buf copy_{};
  const fuse_buf* request_ = nullptr;
  alignas(std::uint64_t) std::array<char, 4096> small_{};
};

struct ServiceLoop::Worker {
  std::atomic<bool> waits{false};   // in read(2), or about to
  std::optional<pthread_t> serves;  // while it does; guarded by ServiceLoop::mutex_
  std::thread thread;               // of run() and look_after()
  Receiver receiver;
  PendingRequest pending;
};

ServiceLoop::ServiceLoop(fuse_session* session, unsigned threads, unsigned most, std::function<void()> relieve)
    : session_(session),
      relieve_(std::move(relieve)),
      busy_poll_(std::thread::hardware_concurrency() > 1),
      roster_(threads, most) {
  for (unsigned i = 0; i < std::max(threads, most); ++i)
    workers_.push_back(std::make_unique<Worker>());
}

ServiceLoop::~ServiceLoop() = default;

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
  bool started = true;
  for (std::size_t i = 0; started && i < workers_.size() && roster_.is_serving(static_cast<int>(i)); ++i)
    started = start(static_cast<int>(i));
  if (!started) fuse_session_exit(session_);
  look_after();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fuse_session_reset(session_);
  if (!started) return codec::io_error(EAGAIN, "start threads");
  if (failed_ != 0) return codec::io_error(failed_, "serve");
  return {};
}

bool ServiceLoop::start(int who) {
  try {
    workers_[static_cast<std::size_t>(who)]->thread = std::thread([this, who] { work(who); });
    return true;
  } catch (const std::exception&) {  // no memory, or too many threads
    return false;
  }
}

void ServiceLoop::interrupt() {
  wake_all();
  kick_others(-1);
}

void ServiceLoop::work(int who) {
  Worker& worker = *workers_[static_cast<std::size_t>(who)];
  PendingRequest::set_current(&worker.pending);
  {
    codec::MutexLock lock(mutex_);
    worker.serves = pthread_self();
  }
  serve_requests(worker, who);
  {
    codec::MutexLock lock(mutex_);
    worker.serves.reset();
  }
  // What made this one leave is for all of them.
  fuse_session_exit(session_);
  wake_all();
}

void ServiceLoop::serve_requests(Worker& worker, int who) {
  while (fuse_session_exited(session_) == 0) {
    if (roster_.is_spare(who)) {
      be_spare(worker, who);
      continue;
    }
    if (busy_poll_.is_parked(who)) {
      stand_aside(who);
      continue;
    }
    bool waited = false;
    if (busy_poll_.is_leader(who) && !look(waited) && busy_poll_.paused(who)) wake_all();
    worker.waits = true;
    if (busy_poll_.is_parked(who) || fuse_session_exited(session_) != 0) {
      worker.waits = false;
      continue;
    }
    if (!take_and_answer(worker, who, waited)) return;
  }
}

/// False: there will be no more requests.
bool ServiceLoop::take_and_answer(Worker& worker, int who, bool waited) {
  const int got = worker.receiver.receive(session_);
  worker.waits = false;
  if (got == -EINTR || got == -EAGAIN) return true;
  if (got == -ENOMEM) {
    // The request stays with the kernel until it can be received; what others hold comes back as they are answered.
    relieve_();
    std::this_thread::sleep_for(kShortage);
    return true;
  }
  // What a request becomes that was about to be taken when the last program left the mount: an end like any other.
  if (got < 0 && got != -ECONNABORTED) failed_ = -got;
  if (got <= 0) return false;
  const BusyPollPolicy::Time taken_at = BusyPollPolicy::Clock::now();
  roster_.took(who, taken_at);
  if (sleeps_.load()) wake_to_look_after();
  if (busy_poll_.taken(who, taken_at, waited)) kick_others(who);
  fuse_session_process_buf(session_, worker.receiver.request());
  if (busy_poll_.answered(who, taken_at, BusyPollPolicy::Clock::now())) wake_all();
  roster_.answered(who);
  return true;
}

bool ServiceLoop::look(bool& waited) const {
  pollfd request{fuse_session_fd(session_), POLLIN, 0};
  waited = poll(&request, 1, 0) != 0;
  if (waited) return true;
  const BusyPollPolicy::Time end = BusyPollPolicy::Clock::now() + BusyPollPolicy::kSpinTime;
  do {
    // The processor may be wanted by the very program that asks.
    sched_yield();
    if (poll(&request, 1, 0) != 0) return true;
  } while (BusyPollPolicy::Clock::now() < end);
  return false;
}

void ServiceLoop::stand_aside(int who) {
  codec::MutexLock lock(mutex_);
  while (busy_poll_.is_parked(who) && fuse_session_exited(session_) == 0)
    changed_.wait(mutex_);
}

void ServiceLoop::be_spare(Worker& worker, int who) {
  worker.receiver.give_back();
  if (busy_poll_.paused(who)) wake_all();
  codec::MutexLock lock(mutex_);
  while (roster_.is_spare(who) && fuse_session_exited(session_) == 0)
    changed_.wait(mutex_);
}

void ServiceLoop::look_after() {
  int quiet = 0;  // looks in a row
  ServiceRoster::Time next_examination{};
  while (fuse_session_exited(session_) == 0) {
    {
      codec::MutexLock lock(mutex_);
      if (quiet >= kQuietLooks) {
        sleeps_ = true;
        // One that has taken a request since has not seen that it is to wake this thread.
        while (sleeps_ && !roster_.is_busy() && fuse_session_exited(session_) == 0)
          taken_.wait(mutex_);
        sleeps_ = false;
        quiet = 0;
      }
      taken_.wait_for(mutex_, ServiceRoster::kStallLimit);
    }
    const ServiceRoster::Time now = ServiceRoster::Clock::now();
    quiet = roster_.is_busy() ? 0 : quiet + 1;
    const bool examines = now >= next_examination;
    if (examines) next_examination = now + kExamination;
    bool calls = busy_poll_.ends_overdue(now);
    for (const int who : roster_.look(now)) {
      if (workers_[static_cast<std::size_t>(who)]->thread.joinable()) {
        calls = true;
      } else if (!start(who)) {
        roster_.not_started(who);
      }
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!roster_.is_overdue(static_cast<int>(i))) continue;
      workers_[i]->receiver.free_idle();
      if (examines) workers_[i]->pending.look();
    }
    if (calls) wake_all();
  }
}

void ServiceLoop::wake_to_look_after() {
  {
    codec::MutexLock lock(mutex_);
    sleeps_ = false;
  }
  taken_.notify_one();
}

void ServiceLoop::kick_others(int who) {
  codec::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = *workers_[i];
    if (static_cast<int>(i) != who && worker.serves && worker.waits) pthread_kill(*worker.serves, SIGUSR1);
  }
}

void ServiceLoop::wake_all() {
  // A thread that is about to wait has looked while it held the mutex.
  codec::MutexLock lock(mutex_);
  changed_.notify_all();
  taken_.notify_all();
}

}  // namespace cframefs::fs
