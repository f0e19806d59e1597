// Which threads take requests from the kernel, so that no request waits because others take long.
//
//            takes a request and is busy for kStallLimit             answers, and enough others serve
//   serving ──────────────────────────────────────────▶ overdue ────────────────────────────────▶ spare
//      ▲                                                    │                                        │
//      └──────────── answers, and too few serve ────────────┘                                        │
//      └──────────────────────── called, because another one is overdue ─────────────────────────────┘
//
// A fixed number of threads serves. A thread whose request takes longer than kStallLimit, because it waits or because
// it computes, does not count any more: a spare one serves in its place, up to a bound. If all that serve are overdue
// at once, twice as many are called the next time, up to kMaxCalled, so that a crowd of slow requests is taken in a
// few steps.
//
// Knows neither threads nor FUSE: fs/fuse/service_loop.h does as it says. Thread safety: took() and answered() by the
// thread itself, all at once; everything else internally synchronised. Ownership: none. Errors: none.
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
  /// So many serve at once at most, if fewer are wanted: each holds memory for a request.
  static constexpr unsigned kMaxCalled = 8;

  /// `wanted`: how many serve; `most`: how many there are at most, overdue and spare ones included.
  ServiceRoster(unsigned wanted, unsigned most);

  /// A thread takes a request, and has answered it. False: it is spare from now on, and waits to be called.
  void took(int thread, Time now) { seats_[index(thread)].busy_since.store(now.time_since_epoch().count()); }
  bool answered(int thread);

  /// Looks for threads that are overdue; to be called every kStallLimit while is_busy(). Returns those that were spare,
  /// or never were started, and serve from now on.
  std::vector<int> look(Time now);
  /// A thread that look() has named could not be started.
  void not_started(int thread);
  /// Whether a thread answers a request.
  bool is_busy() const;
  bool is_spare(int thread) const;
  bool is_serving(int thread) const;
  bool is_overdue(int thread) const;

 private:
  enum class Role : unsigned char { absent, serving, overdue, spare };
  struct Seat {
    std::atomic<Clock::rep> busy_since{0};  // 0: it answers none
    std::atomic<Role> role{Role::absent};   // changed under the mutex
  };
  static std::size_t index(int thread) { return static_cast<std::size_t>(thread); }

  const unsigned wanted_;
  const unsigned most_;
  std::vector<Seat> seats_;
  mutable codec::Mutex mutex_;
  unsigned serving_ GUARDED_BY(mutex_);
  unsigned call_ GUARDED_BY(mutex_);   // how many serve after the next call
  std::atomic<bool> too_many_{false};  // serve since a crowd was taken
};

}  // namespace cframefs::fs
