// A histogram of durations, in buckets that double from 1 us to 17 s.
//
// A disabled histogram reads no clock and counts nothing, so that a mount without statistics pays one branch for each
// request. Thread safety: all members may be called concurrently after enable(); counts and sum are atomic, reading all
// of them is not. Units: nanoseconds.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <chrono>
#include <cstddef>
#include <cstdint>

namespace cframefs::fs {

class Histogram {
 public:
  using Clock = std::chrono::steady_clock;

  /// Buckets with an upper bound; one more has none.
  static constexpr std::size_t kBounds = 25;

  struct Counts {
    std::array<std::uint64_t, kBounds + 1> buckets{};  // not cumulative
    std::uint64_t sum = 0;                             // nanoseconds
  };

  /// Makes the histogram count. REQUIRES: no other thread uses it yet.
  void enable() { enabled_ = true; }

  /// Returns the largest duration that belongs into a bucket.
  static constexpr std::uint64_t bound(std::size_t bucket) { return std::uint64_t{1} << (kFirstBits + bucket); }

  /// Returns the time now, for stop().
  Clock::time_point start() const { return enabled_ ? Clock::now() : Clock::time_point(); }
  /// Adds the time since start().
  void stop(Clock::time_point began) {
    if (!enabled_) return;
    const auto elapsed = std::chrono::nanoseconds(Clock::now() - began).count();
    add(static_cast<std::uint64_t>(std::max<std::int64_t>(elapsed, 0)));
  }
  void add(std::uint64_t duration) {
    const std::uint64_t whole = std::max<std::uint64_t>(duration, 1) - 1;
    const auto bucket = static_cast<std::size_t>(std::bit_width(whole >> kFirstBits));
    buckets_[std::min(bucket, kBounds)].fetch_add(1, std::memory_order_relaxed);
    sum_.fetch_add(duration, std::memory_order_relaxed);
  }
  Counts counts() const {
    Counts counts;
    for (std::size_t i = 0; i < buckets_.size(); ++i)
      counts.buckets[i] = buckets_[i].load(std::memory_order_relaxed);
    counts.sum = sum_.load(std::memory_order_relaxed);
    return counts;
  }

 private:
  static constexpr unsigned kFirstBits = 10;  // the first bucket ends at 1024 ns

  bool enabled_ = false;
  std::array<std::atomic<std::uint64_t>, kBounds + 1> buckets_{};
  std::atomic<std::uint64_t> sum_{0};
};

/// Adds the time of a scope to a histogram.
class Stopwatch {
 public:
  explicit Stopwatch(Histogram& histogram) : histogram_(histogram), began_(histogram.start()) {}
  ~Stopwatch() { histogram_.stop(began_); }
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;

 private:
  Histogram& histogram_;
  const Histogram::Clock::time_point began_;
};

}  // namespace cframefs::fs
