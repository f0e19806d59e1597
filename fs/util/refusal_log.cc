#include "fs/util/refusal_log.h"

#include <utility>

#include <fmt/core.h>

namespace cframefs::fs {

bool RefusalLog::take_place(Clock::time_point now) {
  if (in_window_ == 0 || now - window_ >= kPause) {
    window_ = now;
    in_window_ = 0;
  }
  if (in_window_ >= kMost) return false;
  ++in_window_;
  return true;
}

std::optional<std::string> RefusalLog::note(const std::string& file, const std::string& cause,
                                            const std::function<std::string()>& name_of, Clock::time_point now) {
  std::uint64_t before = 0;
  std::uint64_t others = 0;
  {
    const std::size_t hash = std::hash<std::string>()(file + '\0' + cause);
    codec::MutexLock lock(mutex_);
    Entry& entry = entries_[hash % kEntries];
    const bool is_known = entry.hash == hash && entry.logged != Clock::time_point{};
    if (is_known && now - entry.logged < kPause) {
      ++entry.since;
      return {};
    }
    if (!is_known) unreported_ += std::exchange(entry.since, 0);
    if (!take_place(now)) {
      ++unreported_;
      return {};
    }
    before = std::exchange(entry.since, 0);
    others = std::exchange(unreported_, 0);
    entry.hash = hash;
    entry.logged = now;
  }
  std::string line = fmt::format("{}: refused: {}", name_of(), cause);
  if (before > 0) line += fmt::format(" ({} times more since the last such line)", before);
  if (others > 0) line += fmt::format(" ({} refusals of other files and causes were not logged)", others);
  return line;
}

std::optional<std::string> RefusalLog::rest() {
  std::uint64_t count = 0;
  {
    codec::MutexLock lock(mutex_);
    count = std::exchange(unreported_, 0);
    for (Entry& entry : entries_)
      count += std::exchange(entry.since, 0);
  }
  if (count == 0) return {};
  return fmt::format("{} more refused requests were not logged", count);
}

}  // namespace cframefs::fs
