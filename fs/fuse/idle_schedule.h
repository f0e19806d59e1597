// Decides what an idle mount does when: gives memory back once, and tries to unmount in intervals.
//
// Knows neither threads nor FUSE: fs/fuse/service_loop.h asks for the next step when it has no requests to serve.
// Thread safety: none; one thread at a time. Errors: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <optional>

namespace cframefs::fs {

/// How long a mount is idle before each step; none: never.
struct IdleLimits {
  std::optional<std::chrono::milliseconds> release;
  std::optional<std::chrono::milliseconds> unmount;
};

class IdleSchedule {
 public:
  using Clock = std::chrono::steady_clock;
  using Time = Clock::time_point;

  struct Due {
    bool release = false;
    bool unmount = false;
  };

  explicit IdleSchedule(IdleLimits limits) : limits_(limits) {}

  /// Begins to count: the mount is idle from now on.
  void begin(Time now) {
    release_ = after(now, limits_.release);
    unmount_ = after(now, limits_.unmount);
  }
  /// Returns when the next step is due; nullopt: none is, until begin().
  std::optional<Time> next() const {
    if (release_ && unmount_) return std::min(*release_, *unmount_);
    return release_ ? release_ : unmount_;
  }
  /// Returns the steps that are due. Unmounting is due again after the same time, because a program may use the mount
  /// without requests: a working directory is enough.
  Due take_due(Time now) {
    Due due;
    due.release = release_ && *release_ <= now;
    due.unmount = unmount_ && *unmount_ <= now;
    if (due.release) release_.reset();
    if (due.unmount) unmount_ = after(now, limits_.unmount);
    return due;
  }

 private:
  static std::optional<Time> after(Time now, std::optional<std::chrono::milliseconds> pause) {
    return pause ? std::optional(now + *pause) : std::nullopt;
  }

  const IdleLimits limits_;
  std::optional<Time> release_;
  std::optional<Time> unmount_;
};

}  // namespace cframefs::fs
