// Keeps notifications about an inode away from an answer to a read that they must not cross: the kernel does not take
// the end of a file from an answer that a notification overtakes before the reading program runs again (ToldSize).
//
// Thread safety: internally synchronised; a leaf in the lock order. Callers of settle() and pass() wait for the times
// given here only. Ownership: plain values.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class NotificationGate {
 public:
  /// How long the notifications of one change may be apart.
  static constexpr std::chrono::milliseconds kQuietTime{5};
  /// For how long no notification follows an answer: the program that waits for it is scheduled by then, also on a busy
  /// machine.
  static constexpr std::chrono::milliseconds kAnswerTime{35};
  /// How long settle() and pass() wait at most. Longer than kAnswerTime.
  static constexpr std::chrono::milliseconds kLongestSettling{40};

  /// Returns once no notification has begun or ended for kQuietTime, after kLongestSettling at most. Returns the number
  /// of these events so far.
  std::uint64_t settle(std::uint64_t inode) EXCLUDES(mutex_);
  /// Lets no notification about the inode begin for kAnswerTime. Returns false if there were events since `events`.
  bool keep_quiet(std::uint64_t inode, std::uint64_t events) EXCLUDES(mutex_);

  /// Calls `send`, which sends a notification about the inode, after the quiet time and kLongestSettling at most.
  template <typename Send>
  void pass(std::uint64_t inode, const Send& send) EXCLUDES(mutex_) {
    begin(inode);
    send();
    end(inode);
  }

 private:
  using Clock = std::chrono::steady_clock;
  /// For the inodes that share a remainder.
  struct Slot {
    std::uint64_t events = 0;
    Clock::time_point last;  // event
    Clock::time_point quiet_until;
  };

  void begin(std::uint64_t inode) EXCLUDES(mutex_);
  void end(std::uint64_t inode) EXCLUDES(mutex_);
  static void note_event(Slot& slot);
  Slot& slot_of(std::uint64_t inode) REQUIRES(mutex_) { return slots_[inode % slots_.size()]; }

  codec::Mutex mutex_;
  std::array<Slot, 64> slots_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
