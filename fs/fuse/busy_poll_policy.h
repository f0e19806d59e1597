// Whether one of the threads that answer the kernel should answer alone for a while.
//
// A thread that sleeps in read(2) has to be woken for a request, and on a processor that has nothing else to do that
// takes longer than most answers: 20 to 60 us in a virtual machine. As long as requests come one at a time, one closely
// after the other (a program that reads here and there, lists a directory, appends records), a single thread answers
// all of them and looks for the next one before it sleeps. The others must stand aside meanwhile: the kernel would wake
// one that waits in read(2) for each request, whoever takes it. It ends when requests wait for each other, when answers
// take long, and when the program pauses.
//
// Knows neither threads nor FUSE: fs/fuse/service_loop.h does as it says. Thread safety: all calls at once. Ownership:
// none. Units: of std::chrono. Errors: none.
#pragma once

#include <atomic>
#include <chrono>

namespace cframefs::fs {

class BusyPollPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// As long as this the next request is looked for, and close are requests of which one comes so soon after the answer
  /// to the one before.
  static constexpr std::chrono::microseconds kSpinTime{200};
  /// Beside answers that take longer than this it does not matter that a thread has to be woken.
  static constexpr std::chrono::microseconds kSlowReply{150};
  /// One answer that takes longer than this must not keep the others from serving.
  static constexpr std::chrono::milliseconds kStallLimit{2};
  /// So many requests, each on its own and close, begin it; so many in a row that are not end it.
  static constexpr unsigned kEnterThreshold = 16;
  static constexpr unsigned kLeaveThreshold = 3;
  /// So many begin it again after it was ended by a pause.
  static constexpr unsigned kReenterThreshold = 2;

  /// `may_begin`: false where looking would take the processor from the program that asks.
  explicit BusyPollPolicy(bool may_begin) : may_begin_(may_begin) {}

  /// Thread `who` has taken a request. `waited`: it was there before the one before it had been answered, known of one
  /// who serves alone only. True if `who` serves alone from now on: the others are to be called from read(2).
  bool taken(int who, Time now, bool waited);
  /// `taken_at`: when `who` took what it has answered now. True if it served alone, and does so no longer.
  bool answered(int who, Time taken_at, Time now);
  /// Thread `who` has looked for kSpinTime and found no request. True if it served alone.
  bool paused(int who);

  bool is_leader(int who) const { return alone_.load() == who; }
  bool is_parked(int who) const {
    const int alone = alone_.load();
    return alone != kNobody && alone != who;
  }
  /// Asked now and then by one who stands aside. True if nobody serves alone any longer because of an answer that takes
  /// long.
  bool ends_overdue(Time now);

 private:
  static constexpr int kNobody = -1;

  bool end(int who);

  const bool may_begin_;
  std::atomic<int> alone_{kNobody};
  std::atomic<int> answering_{0};
  std::atomic<Clock::rep> free_since_{0};  // when the last answer was given; since the clock's epoch
  std::atomic<Clock::rep> busy_since_{0};  // who serves alone: when the request was taken; 0: looks for one
  std::atomic<unsigned> close_{0};         // requests in a row, each on its own and close
  std::atomic<bool> only_paused_{false};   // why it ended last
  std::atomic<bool> waited_{false};        // the request that who serves alone answers
  std::atomic<unsigned> slow_streak_{0};   // of his, in a row: waited, or took long
};

}  // namespace cframefs::fs
