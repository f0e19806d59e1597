#include "frame/base/chunk_intervals.h"

#include <algorithm>
#include <iterator>

namespace cframefs::frame {

bool ChunkIntervals::contains(std::int64_t number) const {
  const auto run = next(number);
  return run && run->begin == number;
}

std::optional<ChunkIntervals::Run> ChunkIntervals::next(std::int64_t from) const {
  auto run = runs_.upper_bound(from);
  if (run != runs_.begin() && std::prev(run)->second > from) return Run{from, std::prev(run)->second};
  if (run == runs_.end()) return std::nullopt;
  return Run{run->first, run->second};
}

void ChunkIntervals::add(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  auto run = runs_.upper_bound(begin);
  if (run != runs_.begin() && std::prev(run)->second >= begin) {
    run = std::prev(run);
    begin = run->first;
  }
  // Merge the runs that it touches.
  while (run != runs_.end() && run->first <= end) {
    end = std::max(end, run->second);
    run = runs_.erase(run);
  }
  runs_.emplace_hint(run, begin, end);
}

void ChunkIntervals::remove(std::int64_t begin, std::int64_t end) {
  if (begin >= end) return;
  auto run = runs_.upper_bound(begin);
  if (run != runs_.begin() && std::prev(run)->second > begin) run = std::prev(run);
  while (run != runs_.end() && run->first < end) {
    const Run old{run->first, run->second};
    // Insert first: if memory runs out, nothing has changed.
    if (old.end > end) runs_[end] = old.end;
    if (old.begin < begin) {
      run->second = begin;
      ++run;
    } else {
      run = runs_.erase(run);
    }
    if (old.end > end) return;
  }
}

}  // namespace cframefs::frame
