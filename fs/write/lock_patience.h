// How long a request waits for a lock that another program holds on a frame.
//
// One request of a mount at a time may wait for lock_timeout; those that come meanwhile wait for a short time only, so
// that a program that holds many locks does not occupy all service threads.
//
// Thread safety: one thread per object. Ownership: borrows `is_waiting`. Errors: none.
#pragma once

#include <atomic>
#include <chrono>

namespace cframefs::fs {

class LockPatience {
 public:
  static constexpr std::chrono::milliseconds kShort{200};

  /// `is_waiting`: true while a request of the mount may wait for `longest`.
  LockPatience(std::atomic<bool>& is_waiting, std::chrono::milliseconds longest)
      : is_waiting_(is_waiting), is_long_(!is_waiting.exchange(true)), length_(is_long_ ? longest : kShort) {}
  ~LockPatience() {
    if (is_long_) is_waiting_ = false;
  }
  LockPatience(const LockPatience&) = delete;
  LockPatience& operator=(const LockPatience&) = delete;

  std::chrono::milliseconds length() const { return length_; }

 private:
  std::atomic<bool>& is_waiting_;
  const bool is_long_;
  const std::chrono::milliseconds length_;
};

}  // namespace cframefs::fs
