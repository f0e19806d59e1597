// Bounds the memory of decodes in progress: compressed bytes and filter scratch, which no cache accounts for, and the
// cache blocks that are being filled. The budget also bounds how many decodes run at once.
//
// Decodes of more than 4 MiB and smaller ones have separate lanes, so that a small decode never waits for a large one.
// Each lane serves requests in order of arrival. A request larger than the lane's bound runs when no other of its lane
// does, so every request runs eventually.
//
// Thread safety: internally synchronised. A thread that holds a Reservation must not ask for a second one: it might
// wait for itself.
#pragma once

#include <cstdint>

#include "codec/base/mutex.h"
#include "codec/base/waiting_line.h"

namespace cframefs::fs {

class ByteBudget {
 private:
  struct Lane;

 public:
  class Reservation {
   public:
    Reservation(ByteBudget& budget, std::uint64_t bytes) : lane_(budget.lane_of(bytes)), bytes_(bytes) {
      lane_.acquire(bytes_);
    }
    ~Reservation() { lane_.release(bytes_); }
    Reservation(const Reservation&) = delete;
    Reservation& operator=(const Reservation&) = delete;

   private:
    Lane& lane_;
    std::uint64_t bytes_;
  };

  /// `bound`: bytes of both lanes together. `decoders`: the most decodes of one lane that run at once.
  ByteBudget(std::uint64_t bound, unsigned decoders)
      : small_(bound / kSmallShare, decoders), large_(bound - bound / kSmallShare, decoders) {}

 private:
  static constexpr std::uint64_t kSmallShare = 5;  // the lane of small decodes has 1/5 of the bound
  static constexpr std::uint64_t kLargeBytes = std::uint64_t{4} << 20;

  struct Lane {
    Lane(std::uint64_t lane_bound, unsigned lane_most) : bound(lane_bound), most(lane_most) {}
    void acquire(std::uint64_t bytes) {
      codec::MutexLock lock(mutex);
      if (!line.is_empty() || !has_room(bytes)) wait_for_room(bytes);
      ++running;
      used += bytes;
      if (running < most) line.call_first();
    }
    void release(std::uint64_t bytes) {
      codec::MutexLock lock(mutex);
      --running;
      used -= bytes;
      line.call_first();
    }
    void wait_for_room(std::uint64_t bytes) REQUIRES(mutex) {
      codec::WaitingLine::Place place(line);
      while (!place.is_first() || !has_room(bytes))
        place.wait(mutex);
    }
    bool has_room(std::uint64_t bytes) const REQUIRES(mutex) {
      return running == 0 || (running < most && used + bytes <= bound);
    }

    const std::uint64_t bound;
    const unsigned most;
    codec::Mutex mutex;
    codec::WaitingLine line GUARDED_BY(mutex);
    std::uint64_t used GUARDED_BY(mutex) = 0;
    unsigned running GUARDED_BY(mutex) = 0;
  };
  Lane& lane_of(std::uint64_t bytes) { return bytes > kLargeBytes ? large_ : small_; }

  Lane small_;
  Lane large_;
};

}  // namespace cframefs::fs
