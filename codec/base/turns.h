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

#include <atomic>
#include <chrono>
#include <cstddef>
#include <functional>
#include <list>
#include <utility>

#include "codec/base/mutex.h"

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
  /// while at least one turn is taken; empty: there always is room.
  explicit Turns(std::size_t most, std::function<bool()> has_room = nullptr)
      : most_(most), has_room_(std::move(has_room)) {}

  /// Waits for a turn. Calls `is_wanted` at least every 50 ms while it waits; returns an empty turn once that is false.
  template <class Wanted>
  Turn take(const Wanted& is_wanted) {
    MutexLock lock(mutex_);
    const auto place = line_.insert(line_.end(), char{});
    while (line_.begin() != place || !is_free()) {
      const bool waits_for_room = has_room_ != nullptr && line_.begin() == place;
      changed_.wait_for(mutex_, waits_for_room ? kRoomPause : kWantedPause);
      if (is_wanted()) continue;
      line_.erase(place);
      changed_.notify_all();
      return {};
    }
    line_.erase(place);
    ++taken_;
    moved_at_ = Clock::now().time_since_epoch().count();
    if (!line_.empty() && taken_ < most_) changed_.notify_all();
    return Turn(this);
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
    return !line_.empty();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // Code that makes room does not notify, so the first in line polls.
  static constexpr std::chrono::milliseconds kRoomPause{2};
  static constexpr std::chrono::milliseconds kWantedPause{50};

  bool is_free() const REQUIRES(mutex_) {
    return taken_ == 0 || (taken_ < most_ && (has_room_ == nullptr || has_room_()));
  }
  void give_back() {
    bool is_waited_for = false;
    {
      MutexLock lock(mutex_);
      --taken_;
      moved_at_ = Clock::now().time_since_epoch().count();
      is_waited_for = !line_.empty();
    }
    if (is_waited_for) changed_.notify_all();
  }

  const std::size_t most_;
  const std::function<bool()> has_room_;
  mutable Mutex mutex_;
  CondVar changed_;
  std::list<char> line_ GUARDED_BY(mutex_);  // one element per waiting thread
  std::size_t taken_ GUARDED_BY(mutex_) = 0;
  std::atomic<Clock::rep> moved_at_{0};  // when a turn was last taken or given back; changed under the mutex
};

}  // namespace cframefs::codec
