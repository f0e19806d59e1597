// At most so many at once, in the order in which they come.
//
//           take()                    first in line, and room
//   (none) ─────────▶ waits in line ──────────────────────────▶ has a turn ──~Turn()──▶ (none)
//                          │ no longer wanted
//                          └──────────▶ (none)
//
// The first in line may have to wait for room besides (memory that others hold). It never does when no turn is taken,
// so there is always one that goes on.
//
// Thread safety: internally synchronised. A thread must not take a second turn of the same object while it has one.
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
  /// Gives itself back. Movable; may be empty.
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

  /// Far longer than a turn takes that computes and copies alone.
  static constexpr std::chrono::milliseconds kPatience{100};

  /// `has_room`: asked, while a turn is taken, whether there is room for another one; empty: always. It is called with
  /// the lock held.
  explicit Turns(std::size_t most, std::function<bool()> has_room = nullptr)
      : most_(most), has_room_(std::move(has_room)) {}

  /// Waits for a turn. `is_wanted` is asked every now and then meanwhile; an empty turn if it no longer is.
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
      return Turn();
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
  /// Waits as long as turns are taken and given back: an empty turn once neither has happened for about `patience`. For
  /// work that goes on without one, because those that have the turns may wait for a disk that does not answer.
  template <class Wanted>
  Turn take_while_they_move(std::chrono::milliseconds patience, const Wanted& is_wanted) {
    return take([&] { return Clock::now().time_since_epoch() - Clock::duration(moved_at_) < patience && is_wanted(); });
  }
  /// Whether a thread waits for a turn.
  bool is_waited_for() const {
    MutexLock lock(mutex_);
    return !line_.empty();
  }

 private:
  using Clock = std::chrono::steady_clock;

  // What makes room does not tell.
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
  std::list<char> line_ GUARDED_BY(mutex_);  // a place for each thread that waits
  std::size_t taken_ GUARDED_BY(mutex_) = 0;
  std::atomic<Clock::rep> moved_at_{0};  // when a turn was last taken or given back; changed under the mutex
};

}  // namespace cframefs::codec
