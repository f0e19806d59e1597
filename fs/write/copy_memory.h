// Limits the memory of compressed chunks that copies hold between reading and committing them, for all copies together.
//
// A copy waits for its reservation while others hold the memory: a few large parts in sequence delay small requests
// less than many small parts at once. But it does not depend on the other copies, whose sources may never answer: once
// no copy has taken or returned memory for kPatience, it continues with what is left, which may be nothing; it then
// holds one chunk at a time.
//
// Thread safety: internally synchronised. Ownership: reservations must not outlive it. Units: bytes. Errors: none.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class CopyMemory {
 public:
  static constexpr std::chrono::milliseconds kPatience{100};

  class Reservation {
   public:
    /// Takes `wanted` bytes of the limit `all`, or what is left of it.
    Reservation(CopyMemory& memory, std::uint64_t all, std::uint64_t wanted)
        : memory_(memory), all_(all), bytes_(memory.acquire(all, std::min(wanted, all))) {}
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;
    ~Reservation() { memory_.settle(all_, bytes_, 0); }
    std::uint64_t bytes() const { return bytes_; }
    /// Sets the bytes that the copy holds, which may exceed its reservation by a chunk.
    void settle(std::uint64_t bytes) {
      memory_.settle(all_, bytes_, bytes);
      bytes_ = bytes;
    }

   private:
    CopyMemory& memory_;
    const std::uint64_t all_;
    std::uint64_t bytes_;
  };

  std::uint64_t held() const {
    codec::MutexLock lock(mutex_);
    return held_;
  }

 private:
  using Clock = std::chrono::steady_clock;

  std::uint64_t acquire(std::uint64_t all, std::uint64_t wanted) {
    codec::MutexLock lock(mutex_);
    const auto left = [&]() REQUIRES(mutex_) { return all - std::min(all, held_); };
    while (left() < wanted && Clock::now() < moved_at_ + kPatience)
      returned_.wait_for(mutex_, kPatience);
    const std::uint64_t taken = std::min(wanted, left());
    held_ += taken;
    if (taken == wanted) moved_at_ = Clock::now();
    return taken;
  }
  void settle(std::uint64_t all, std::uint64_t before, std::uint64_t now) {
    {
      codec::MutexLock lock(mutex_);
      held_ += now - before;
      // Memory of copies that continued without a reservation makes no room.
      if (now < before && held_ < all) moved_at_ = Clock::now();
    }
    if (now < before) returned_.notify_all();
  }

  mutable codec::Mutex mutex_;
  codec::CondVar returned_;
  Clock::time_point moved_at_ GUARDED_BY(mutex_);  // when memory was last taken or returned
  std::uint64_t held_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
