// A fair semaphore: at most `most` threads hold a turn at once, in order of arrival.
//
//           take()                    first in line, and room
//   (none) ─────────▶ waits in line ──────────────────────────▶ has a turn ──~Turn()──▶ (none)
//                          │ no longer wanted
//                          └──────────▶ (none)
//
// The first thread in line may also have to wait for room (memory that other threads hold). If no turn is taken, it
// does not wait for room, so one thread can always proceed.
//
// Thread safety: internally synchronised. A thread must not take a second turn of the same object while it holds one.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <utility>

#include "codec/base/mutex.h"
#include "codec/base/waiting_line.h"

namespace cframefs::codec {

class Turns {
 public:
  /// A turn, given back on destruction. Movable; may be empty.
  class Turn {
   public:
    Turn() = default;
    Turn(Turn&& other) noexcept : turns_(std::exchange(other.turns_, nullptr)) {}
    Turn& operator=(Turn&& other) noexcept {
      std::swap(turns_, other.turns_);
      return *this;
    }
    ~Turn() {
      if (turns_ != nullptr) turns_->give_back();
    }
    explicit operator bool() const { return turns_ != nullptr; }

   private:
    friend class Turns;
    explicit Turn(Turns* turns) : turns_(turns) {}
    Turns* turns_ = nullptr;
  };

  /// Far longer than a turn that only computes and copies takes.
  static constexpr std::chrono::milliseconds kPatience{100};

  /// `most`: turns at once. `has_room`: returns whether there is room for one more turn, called with the lock held
  /// while at least one turn is taken; empty: there always is room. `wanted_pause`: the longest time between
  /// two calls of `is_wanted` while a thread waits.
  explicit Turns(std::size_t most, std::function<bool()> has_room = nullptr,
                 std::chrono::milliseconds wanted_pause = kWantedPause)
      : most_(most), has_room_(std::move(has_room)), wanted_pause_(wanted_pause) {}

  /// Waits for a turn. Calls `is_wanted` again and again while it waits; returns an empty turn once that is false.
  template <class Wanted>
  Turn take(const Wanted& is_wanted) {
    MutexLock lock(mutex_);
    const bool is_taken = (line_.is_empty() && is_free()) || wait_for_turn(is_wanted);
    if (is_taken) {
      ++taken_;
      moved_at_ = Clock::now().time_since_epoch().count();
    }
    // The next thread is the first now.
    if (!is_taken || taken_ < most_) line_.call_first();
    return is_taken ? Turn(this) : Turn();
  }
  Turn take() {
    return take([] { return true; });
  }
  /// Waits for a turn, but returns an empty one if no turn was taken or given back for about `patience`. For work that
  /// can continue without a turn, because the holders may wait for a disk that does not respond.
  template <class Wanted>
  Turn take_while_they_move(std::chrono::milliseconds patience, const Wanted& is_wanted) {
    return take([&] { return Clock::now().time_since_epoch() - Clock::duration(moved_at_) < patience && is_wanted(); });
  }
  /// Returns true if a thread waits for a turn.
  bool is_waited_for() const {
    MutexLock lock(mutex_);
    return !line_.is_empty();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Code that makes room does not notify, so the first in line polls.
  static constexpr std::chrono::milliseconds kRoomPause{2};
  static constexpr std::chrono::milliseconds kWantedPause{50};

  bool is_free() const REQUIRES(mutex_) {
    return taken_ == 0 || (taken_ < most_ && (has_room_ == nullptr || has_room_()));
  }
  /// Returns true when a turn is free for the caller, and false when it wants none any more.
  template <class Wanted>
  bool wait_for_turn(const Wanted& is_wanted) REQUIRES(mutex_) {
    WaitingLine::Place place(line_);
    while (!place.is_first() || !is_free()) {
      const bool waits_for_room = has_room_ != nullptr && place.is_first();
      place.wait_for(mutex_, waits_for_room ? std::min(kRoomPause, wanted_pause_) : wanted_pause_);
      if (!is_wanted()) return false;
    }
    return true;
  }
  void give_back() {
    MutexLock lock(mutex_);
    --taken_;
    moved_at_ = Clock::now().time_since_epoch().count();
    line_.call_first();
  }

  const std::size_t most_;
  const std::function<bool()> has_room_;
  const std::chrono::milliseconds wanted_pause_;
  mutable Mutex mutex_;
  WaitingLine line_ GUARDED_BY(mutex_);
  std::size_t taken_ GUARDED_BY(mutex_) = 0;
  std::atomic<Clock::rep> moved_at_{0};  // when a turn was last taken or given back; changed under the mutex
};

}  // namespace cframefs::codec
