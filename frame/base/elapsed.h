// Time differences for file timestamps, which may hold any number of seconds.
#pragma once

#include <algorithm>
#include <cstdint>
#include <ctime>
#include <limits>

namespace cframefs::frame {

/// Returns the nanoseconds from `then` to `now`, clamped to about 292 years in either direction.
inline std::int64_t elapsed_ns(const struct timespec& then, const struct timespec& now) {
  constexpr std::int64_t kMax = std::numeric_limits<std::int64_t>::max();
  constexpr std::int64_t kSecond = 1'000'000'000;
  std::int64_t seconds = 0;
  std::int64_t nanoseconds = 0;
  const bool fits = !__builtin_sub_overflow(std::int64_t{now.tv_sec}, std::int64_t{then.tv_sec}, &seconds) &&
                    !__builtin_mul_overflow(seconds, kSecond, &nanoseconds) &&
                    !__builtin_add_overflow(nanoseconds, std::int64_t{now.tv_nsec} - then.tv_nsec, &nanoseconds);
  if (fits) return std::max(nanoseconds, -kMax);
  return now.tv_sec < then.tv_sec ? -kMax : kMax;
}

/// Returns the nanoseconds from `then` until now.
inline std::int64_t age_ns(const struct timespec& then) {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return elapsed_ns(then, now);
}

}  // namespace cframefs::frame
