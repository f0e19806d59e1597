// Decides which threads take requests from the kernel, so that slow requests do not delay others.
//
//            takes a request and is busy for kStallLimit,
//            or begins to wait for the disk                          answers, and enough others serve
//   serving ──────────────────────────────────────────▶ overdue ────────────────────────────────▶ spare
//      ▲                                                    │                                        │
//      └──────────── answers, and too few serve ────────────┘                                        │
//      └──────────────────────── called, because another one is overdue ─────────────────────────────┘
//
// A fixed number of threads serves. A thread whose request takes longer than kStallLimit, because it waits or because
// it computes, does not count any more: a spare thread replaces it, up to a bound. If all serving threads are overdue
// at once, the roster calls twice as many the next time, up to kMaxCalled, so that many slow requests are taken in a
// few steps. A thread that begins to wait for the disk does not count from then on, because the disk serves many
// waiting threads together: the filesystem below commits the files of all in one transaction.
//
// Knows neither threads nor FUSE: fs/fuse/service_loop.h carries out the decisions. Thread safety: took() and
// answered() by the thread itself, concurrently with all others; everything else internally synchronised. Ownership:
// none. Errors: none.
#pragma once

#include <atomic>
#include <chrono>
#include <memory>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class ServiceRoster {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  static constexpr std::chrono::milliseconds kStallLimit{2};
  /// At most this number of threads serves at once if `wanted` is smaller, because each holds memory for a request.
  static constexpr unsigned kMaxCalled = 8;
  /// At most this number of threads is overdue because it waits for the disk: more gain nothing.
  static constexpr unsigned kMaxWaiting = 16;

  /// `wanted`: how many threads serve; `most`: the number of all threads, including overdue and spare ones.
  ServiceRoster(unsigned wanted, unsigned most);

  /// Notes that a thread has taken a request.
  void took(int thread, Time now) { seats_[index(thread)].busy_since.store(now.time_since_epoch().count()); }
  /// Notes that a thread has answered its request. Returns false if the thread is spare from now on.
  bool answered(int thread);
  /// Notes that a thread begins to wait for the disk. Returns true if no thread serves now: the caller has look()
  /// called at once.
  bool waits(int thread);

  /// Marks threads as overdue. Returns the threads that serve from now on: they were spare, or are not started yet. The
  /// caller calls look() every kStallLimit while is_busy().
  std::vector<int> look(Time now);
  /// Notes that a thread which look() has returned could not be started.
  void not_started(int thread);
  /// Returns true if a thread is answering a request.
  bool is_busy() const;
  bool is_spare(int thread) const;
  bool is_serving(int thread) const;
  bool is_overdue(int thread) const;

 private:
  enum class Role : unsigned char { absent, serving, overdue, spare };
  struct Seat {
    std::atomic<Clock::rep> busy_since{0};  // 0: not answering
    std::atomic<Role> role{Role::absent};   // changed under the mutex
  };
  static std::size_t index(int thread) { return static_cast<std::size_t>(thread); }

  const unsigned wanted_;
  const unsigned most_;
  std::vector<Seat> seats_;
  mutable codec::Mutex mutex_;
  unsigned serving_ GUARDED_BY(mutex_);
  unsigned call_ GUARDED_BY(mutex_);   // the number of serving threads after the next call
  std::atomic<bool> too_many_{false};  // more than wanted_ serve
};

}  // namespace cframefs::fs
