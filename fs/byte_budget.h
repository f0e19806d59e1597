// Bounds the memory of decodes under way: compressed bytes and filter scratch, which no cache accounts for, and the
// cells that are being filled.
//
// A decode that alone is larger than the bound runs when nothing else does, so everything gets its turn. Thread safety:
// internally synchronised. A holder must not ask for a second share (it might wait for itself).
#pragma once

#include <cstdint>

#include "codec/mutex.h"

namespace cframefs::fs {

class ByteBudget {
 public:
  class Share {
   public:
    Share(ByteBudget& budget, std::uint64_t bytes) : budget_(budget), bytes_(bytes) { budget_.take(bytes_); }
    ~Share() { budget_.give(bytes_); }
    Share(const Share&) = delete;
    Share& operator=(const Share&) = delete;

   private:
    ByteBudget& budget_;
    std::uint64_t bytes_;
  };

  explicit ByteBudget(std::uint64_t bound) : bound_(bound) {}

 private:
  void take(std::uint64_t bytes) {
    codec::MutexLock lock(mutex_);
    while (used_ != 0 && used_ + bytes > bound_)
      given_.wait(mutex_);
    used_ += bytes;
  }
  void give(std::uint64_t bytes) {
    {
      codec::MutexLock lock(mutex_);
      used_ -= bytes;
    }
    given_.notify_all();
  }

  const std::uint64_t bound_;
  codec::Mutex mutex_;
  codec::Condition given_;
  std::uint64_t used_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
