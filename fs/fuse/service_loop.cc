#include "fs/fuse/service_loop.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <exception>
#include <optional>
#include <thread>
#include <utility>

#include <poll.h>
#include <sched.h>

#include "codec/base/malloc_ptr.h"
#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/pending_request.h"

namespace cframefs::fs {

namespace {

// The supervisor sleeps after this number of rounds without a request.
constexpr int kQuietLooks = 50;
// How often the supervisor checks whether callers of slow requests still wait.
constexpr std::chrono::milliseconds kExamination{20};
// The pause of a thread that has no memory to receive a request. It limits the messages: libfuse logs each attempt.
constexpr std::chrono::milliseconds kShortage{100};

}  // namespace

/// Receives requests into memory for the largest request. A small request is copied out, so that another thread can
/// free the memory while the answer is slow.
///
///   used ──set_aside()──▶ idle ──free_idle()──▶ (being freed) ──▶ freed
///    ▲                     │                                        │
///    └─────────────────── take_back() ──────────────────────────────┘
class ServiceLoop::Receiver {
 public:
  ~Receiver() { free_memory(); }

  /// Receives a request. Returns its number of bytes, 0, or a negative errno, as libfuse does.
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
  /// Frees the memory. Called by the thread itself, between requests.
  void give_back() {
    take_back();
    free_memory();
  }
  /// Frees the memory unless it is in use. Called by any other thread.
  void free_idle() {
    State idle = State::idle;
    if (!state_.compare_exchange_strong(idle, State::being_freed)) return;
    free_memory();
    state_.store(State::freed, std::memory_order_release);
  }

 private:
  enum class State : unsigned char { used, idle, being_freed, freed };

  void free_memory() {
    codec::FreeMemory()(memory_.mem);  // libfuse has allocated it
    memory_ = fuse_buf{};
  }
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
  std::optional<pthread_t> serves;  // set while it serves; guarded by ServiceLoop::mutex_
  std::thread thread;               // used by run() and supervise() only
  codec::CondVar called;            // the thread is spare, and waits to be called
  Receiver receiver;
  PendingRequest pending;
};

ServiceLoop::ServiceLoop(fuse_session* session, unsigned threads, unsigned most, std::function<void()> relieve,
                         IdleLimits limits, std::function<void(const IdleSchedule::Due&)> on_idle,
                         std::function<void()> on_end)
    : session_(session),
      relieve_(std::move(relieve)),
      on_idle_(std::move(on_idle)),
      on_end_(std::move(on_end)),
      busy_poll_(std::thread::hardware_concurrency() > 1),
      roster_(threads, most),
      idle_(limits) {
  for (unsigned i = 0; i < std::max(threads, most); ++i)
    workers_.push_back(std::make_unique<Worker>());
}

ServiceLoop::~ServiceLoop() = default;

codec::Result<void> ServiceLoop::run() {
  // Service threads block the signals that end the session, so that these do not interrupt their calls. They accept
  // SIGUSR1 even if it was blocked.
  sigset_t blocked;
  sigset_t before;
  sigfillset(&blocked);
  sigdelset(&blocked, SIGUSR1);
  for (const int fault : {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGTRAP, SIGSYS, SIGABRT})
    sigdelset(&blocked, fault);
  pthread_sigmask(SIG_SETMASK, &blocked, &before);
  bool started = true;
  for (std::size_t i = 0; started && i < workers_.size() && roster_.is_serving(static_cast<int>(i)); ++i)
    started = start(static_cast<int>(i));
  if (!started) fuse_session_exit(session_);
  supervise();
  if (on_end_) on_end_();
  for (const auto& worker : workers_) {
    if (worker->thread.joinable()) worker->thread.join();
  }
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  fuse_session_reset(session_);
  if (!started) return codec::io_error(EAGAIN, "start threads");
  if (failed_ != 0) return codec::io_error(failed_, "serve");
  return {};
}

bool ServiceLoop::start(int thread) {
  try {
    workers_[static_cast<std::size_t>(thread)]->thread = std::thread([this, thread] { work(thread); });
    return true;
  } catch (const std::exception&) {  // no memory, or too many threads
    return false;
  }
}

void ServiceLoop::interrupt() {
  wake_all();
  kick_others(-1);
}

void ServiceLoop::work(int thread) {
  Worker& worker = *workers_[static_cast<std::size_t>(thread)];
  worker.pending.on_disk_wait([this, thread] { give_way(thread); });
  PendingRequest::set_current(&worker.pending);
  {
    codec::MutexLock lock(mutex_);
    worker.serves = pthread_self();
  }
  serve_requests(worker, thread);
  {
    codec::MutexLock lock(mutex_);
    worker.serves.reset();
  }
  // The reason why this thread leaves applies to all threads.
  fuse_session_exit(session_);
  wake_all();
}

void ServiceLoop::serve_requests(Worker& worker, int thread) {
  while (fuse_session_exited(session_) == 0) {
    if (roster_.is_spare(thread)) {
      be_spare(worker, thread);
      continue;
    }
    if (busy_poll_.is_parked(thread)) {
      stand_aside(thread);
      continue;
    }
    bool was_queued = false;
    if (busy_poll_.is_leader(thread) && !poll_for_request(was_queued)) busy_poll_.on_idle();
    worker.waits = true;
    if (busy_poll_.is_parked(thread) || fuse_session_exited(session_) != 0) {
      worker.waits = false;
      continue;
    }
    if (!take_and_answer(worker, thread, was_queued)) return;
  }
}

/// Returns false if there will be no more requests.
bool ServiceLoop::take_and_answer(Worker& worker, int thread, bool was_queued) {
  const int got = worker.receiver.receive(session_);
  worker.waits = false;
  if (got == -EINTR || got == -EAGAIN) return true;
  if (got == -ENOMEM) {
    // The request stays in the kernel until it can be received. Other threads free memory as they answer.
    relieve_();
    std::this_thread::sleep_for(kShortage);
    return true;
  }
  // ECONNABORTED: the mount ended while the request was being taken. This is a normal end.
  if (got < 0 && got != -ECONNABORTED) failed_ = -got;
  if (got <= 0) return false;
  const BusyPollPolicy::Time taken_at = BusyPollPolicy::Clock::now();
  roster_.took(thread, taken_at);
  if (sleeps_.load()) wake_supervisor();
  if (busy_poll_.on_request(thread, taken_at, was_queued)) kick_others(thread);
  fuse_session_process_buf(session_, worker.receiver.request());
  if (busy_poll_.on_reply(thread, taken_at, BusyPollPolicy::Clock::now())) wake_all();
  roster_.answered(thread);
  return true;
}

bool ServiceLoop::poll_for_request(bool& was_queued) {
  pollfd request{fuse_session_fd(session_), POLLIN, 0};
  was_queued = poll(&request, 1, 0) != 0;
  if (was_queued) return true;
  BusyPollPolicy::Time now = BusyPollPolicy::Clock::now();
  const BusyPollPolicy::Time end = now + BusyPollPolicy::kSpinTime;
  while (now < end && busy_poll_.polls(now)) {
    // The calling program may need this processor.
    sched_yield();
    const BusyPollPolicy::Time before = std::exchange(now, BusyPollPolicy::Clock::now());
    busy_poll_.on_poll(before, now);
    if (poll(&request, 1, 0) != 0) return true;
  }
  return false;
}

void ServiceLoop::stand_aside(int thread) {
  codec::MutexLock lock(mutex_);
  while (busy_poll_.is_parked(thread) && fuse_session_exited(session_) == 0)
    changed_.wait(mutex_);
}

void ServiceLoop::be_spare(Worker& worker, int thread) {
  worker.receiver.give_back();
  if (busy_poll_.resign(thread)) wake_all();
  codec::MutexLock lock(mutex_);
  while (roster_.is_spare(thread) && fuse_session_exited(session_) == 0)
    worker.called.wait(mutex_);
}

void ServiceLoop::supervise() {
  int quiet = 0;  // consecutive rounds without a request
  ServiceRoster::Time next_examination{};
  while (fuse_session_exited(session_) == 0) {
    {
      codec::MutexLock lock(mutex_);
      if (quiet >= kQuietLooks) {
        sleep_until_request();
        quiet = 0;
      }
      taken_.wait_for(mutex_, ServiceRoster::kStallLimit);
    }
    const ServiceRoster::Time now = ServiceRoster::Clock::now();
    quiet = roster_.is_busy() ? 0 : quiet + 1;
    const bool examines = now >= next_examination;
    if (examines) next_examination = now + kExamination;
    if (busy_poll_.ends_overdue(now)) wake_all();
    for (const int thread : roster_.look(now)) {
      Worker& worker = *workers_[static_cast<std::size_t>(thread)];
      if (worker.thread.joinable()) {
        codec::MutexLock lock(mutex_);
        worker.called.notify_all();
      } else if (!start(thread)) {
        roster_.not_started(thread);
      }
    }
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      if (!roster_.is_overdue(static_cast<int>(i))) continue;
      workers_[i]->receiver.free_idle();
      if (examines) workers_[i]->pending.look();
    }
  }
}

void ServiceLoop::sleep_until_request() {
  sleeps_ = true;
  idle_.begin(IdleSchedule::Clock::now());
  // A thread that took a request before sleeps_ was set does not wake this thread: check the roster.
  while (sleeps_ && !roster_.is_busy() && fuse_session_exited(session_) == 0) {
    const auto next = idle_.next();
    if (!next) {
      taken_.wait(mutex_);
      continue;
    }
    const auto now = IdleSchedule::Clock::now();
    if (now < *next) taken_.wait_for(mutex_, std::chrono::ceil<std::chrono::milliseconds>(*next - now));
    if (!sleeps_ || roster_.is_busy()) break;
    if (const auto due = idle_.take_due(IdleSchedule::Clock::now()); due.release || due.unmount) on_idle_(due);
  }
  sleeps_ = false;
}

void ServiceLoop::wake_supervisor() {
  {
    codec::MutexLock lock(mutex_);
    sleeps_ = false;
  }
  taken_.notify_one();
}

void ServiceLoop::give_way(int thread) {
  // The supervisor, which starts and calls threads. If it misses this, it looks after kStallLimit.
  if (roster_.waits(thread)) taken_.notify_one();
}

void ServiceLoop::kick_others(int thread) {
  codec::MutexLock lock(mutex_);
  for (std::size_t i = 0; i < workers_.size(); ++i) {
    const Worker& worker = *workers_[i];
    if (static_cast<int>(i) != thread && worker.serves && worker.waits) pthread_kill(*worker.serves, SIGUSR1);
  }
}

void ServiceLoop::wake_all() {
  // A waiting thread checks its condition under the mutex, so it cannot miss this call.
  codec::MutexLock lock(mutex_);
  changed_.notify_all();
  taken_.notify_all();
  if (fuse_session_exited(session_) == 0) return;
  for (const auto& worker : workers_)
    worker->called.notify_all();
}

}  // namespace cframefs::fs
