// Limits the lines about refused requests: one for each file and cause in kPause, and kMost for all files together in
// the same time. So neither a program that repeats a request nor one that tries ten thousand files fills the log. The
// memory is a table of fixed size; a refusal that takes the place of another in it makes the log forget the other one.
//
// Thread safety: all members may be called concurrently. Units: refusals.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class RefusalLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr std::chrono::seconds kPause{60};
  static constexpr unsigned kMost = 100;

  RefusalLog() : entries_(kEntries) {}

  /// Records a refusal. Returns the line to log, or nothing. `file`: identifies the file; `cause`: why it is refused;
  /// `name_of`: returns the name of the file, called only for a line.
  std::optional<std::string> note(const std::string& file, const std::string& cause,
                                  const std::function<std::string()>& name_of, Clock::time_point now);
  /// Returns a line about the refusals that no line has reported yet, and forgets them.
  std::optional<std::string> rest();

 private:
  static constexpr std::size_t kEntries = 1024;
  struct Entry {
    std::size_t hash = 0;  // of file and cause
    Clock::time_point logged{};
    std::uint64_t since = 0;  // refusals after the last line
  };
  bool take_place(Clock::time_point now) REQUIRES(mutex_);

  codec::Mutex mutex_;
  std::vector<Entry> entries_ GUARDED_BY(mutex_);  // by hash, without probing
  Clock::time_point window_ GUARDED_BY(mutex_){};  // when the present kPause began
  unsigned in_window_ GUARDED_BY(mutex_) = 0;      // lines in it
  std::uint64_t unreported_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
