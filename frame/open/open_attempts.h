// The loop for opening a file that another program may be writing.
//
// C-Blosc2 overwrites the index of a frame before it writes the header. A reader that opens the frame in between finds
// damage, and tries again until header and index match. A file that has not changed for a while has no such writer.
// Loops must not be nested: a damaged file that changed just now would cost the product of their attempts.
//
// Thread safety: functions without state.
#pragma once

#include <chrono>
#include <ctime>
#include <thread>

#include "codec/base/error.h"
#include "frame/base/elapsed.h"

namespace cframefs::frame {

inline constexpr int kOpenAttempts = 20;
inline constexpr std::chrono::milliseconds kOpenPause{1};

/// Returns true if a writer may be in the middle of the change that was made at `modified`. Some filesystems store
/// times in steps of 2 s.
inline bool changed_recently(const struct timespec& modified) {
  return age_ns(modified) < 2'000'000'000;
}

/// The outcome of one attempt.
template <class Opened>
struct OpenAttempt {
  codec::Result<Opened> opened;
  bool is_changing = false;  // the file changed during the attempt, or looks damaged and changed just now
};

/// Calls `attempt`, which returns an OpenAttempt, until the file is not changing, at most kOpenAttempts times. Returns
/// what the last attempt opened.
template <class Attempt>
auto open_in_attempts(Attempt attempt) -> decltype(attempt().opened) {
  for (int number = 1;; ++number) {
    auto outcome = attempt();
    if (!outcome.is_changing || number == kOpenAttempts) return std::move(outcome.opened);
    std::this_thread::sleep_for(kOpenPause);
  }
}

}  // namespace cframefs::frame
