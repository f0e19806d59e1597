// Decides when one service thread (the leader) answers all requests, and when it polls for the next one.
//
// Waking a thread that sleeps in read(2) takes 20 to 60 us on an idle processor of a virtual machine, which is longer
// than most answers, and the kernel wakes the threads in turn, so that each finds the caches of its processor cold.
// While requests come back to back, one at a time (a program reads at random, lists a directory, appends records,
// creates files), the leader answers all of them and polls before it sleeps. The other threads are parked, because the
// kernel would wake a thread that waits in read(2) for each request, even if the leader takes it. After a pause the
// leader sleeps until the next request. It steps down when requests queue, when answers are slow, and when the program
// pauses for long.
//
// Knows neither threads nor FUSE: fs/fuse/service_loop.h carries out the decisions. Thread safety: all calls may be
// concurrent. Ownership: none. Units: of std::chrono. Errors: none.
#pragma once

#include <atomic>
#include <chrono>

namespace cframefs::fs {

class BusyPollPolicy {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  /// How long the leader polls for the next request. Also the largest gap between an answer and the next request that
  /// counts as back to back.
  static constexpr std::chrono::microseconds kSpinTime{200};
  /// If one look for a request takes longer than this, polling costs more than it gains, because a thread that yields
  /// the processor waits longer for it than one that was woken.
  static constexpr std::chrono::microseconds kCrowded{500};
  static constexpr std::chrono::milliseconds kCrowdedTime{100};
  /// Above this service time the wake-up cost is negligible.
  static constexpr std::chrono::microseconds kSlowReply{150};
  /// The other threads serve again after one answer takes longer than this.
  static constexpr std::chrono::milliseconds kStallLimit{2};
  /// The number of back-to-back requests that makes a thread the leader, and the number of consecutive slow or queued
  /// requests that ends this.
  static constexpr unsigned kEnterThreshold = 16;
  static constexpr unsigned kLeaveThreshold = 3;
  /// How many back-to-back requests are needed for each one that is slow, comes after a pause, or comes during another:
  /// a program that creates files sends one in seven while the kernel's RELEASE of the file before is answered.
  static constexpr unsigned kSetback = 4;
  /// A pause of this length ends the leadership, so that the requests of several programs need not queue first.
  static constexpr std::chrono::milliseconds kLongPause{10};
  /// The number of consecutive back-to-back requests that makes a leader again after a pause ended the last one, or one
  /// answer that may have taken long only because other programs needed the processor.
  static constexpr unsigned kReenterThreshold = 2;

  /// `may_begin`: false if polling would take the processor from the calling program.
  explicit BusyPollPolicy(bool may_begin) : may_begin_(may_begin) {}

  /// Notes that `thread` has taken a request. `was_queued`: the request was pending before `thread` had answered the
  /// one before; known for the leader only. Returns true if `thread` becomes the leader: the caller then interrupts the
  /// other threads in read(2).
  bool on_request(int thread, Time now, bool was_queued);
  /// Notes that `thread` has answered the request that it took at `taken_at`. Returns true if `thread` was the leader
  /// and is so no longer.
  bool on_reply(int thread, Time taken_at, Time now);
  /// Returns whether the leader polls before it sleeps. It does not after a pause, until requests are back to back.
  bool polls(Time now) const { return polls_.load() && now.time_since_epoch().count() >= crowded_until_.load(); }
  /// Notes that the leader polled at `before` and could not do so again until `now`, because other programs need the
  /// processor: it does not poll for kCrowdedTime if that took longer than kCrowded.
  void on_poll(Time before, Time now);
  /// Notes that the leader has polled for kSpinTime without a request. It then sleeps, and stays the leader.
  void on_idle() { polls_ = false; }
  /// Returns true if `thread` was the leader. It is so no longer.
  bool resign(int thread);

  bool is_leader(int thread) const { return leader_.load() == thread; }
  bool is_parked(int thread) const {
    const int leader = leader_.load();
    return leader != kNone && leader != thread;
  }
  /// Ends the leadership of a thread whose answer takes longer than kStallLimit, or which has had no request for
  /// kLongPause. Returns true if it did. The supervisor of the threads calls this regularly.
  bool ends_overdue(Time now);

 private:
  static constexpr int kNone = -1;

  bool end(int thread);
  void set_back();

  const bool may_begin_;
  std::atomic<int> leader_{kNone};
  std::atomic<int> answering_{0};
  std::atomic<Clock::rep> free_since_{0};  // when the last answer was given; since the clock's epoch
  std::atomic<Clock::rep> busy_since_{0};  // when the leader took its request; 0: it polls
  std::atomic<unsigned> back_to_back_{0};  // back-to-back requests, one at a time, less the setbacks
  std::atomic<bool> polls_{true};
  std::atomic<Clock::rep> crowded_until_{0};  // since the clock's epoch
  std::atomic<bool> only_paused_{false};      // a pause or one long answer ended the last leadership
  std::atomic<bool> leader_queued_{false};    // the leader's request was queued
  std::atomic<unsigned> slow_streak_{0};      // consecutive slow or queued requests of the leader
};

}  // namespace cframefs::fs
