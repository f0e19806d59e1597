// A set of chunk numbers, stored as runs of consecutive numbers: cost depends on the number of runs, not on their
// length.
//
// Thread safety: that of a plain value. Units: chunk numbers.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>

namespace cframefs::frame {

class ChunkIntervals {
 public:
  struct Run {
    std::int64_t begin = 0;
    std::int64_t end = 0;  // exclusive
    bool operator==(const Run&) const = default;
  };
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

  bool empty() const { return runs_.empty(); }
  /// Returns the number of runs.
  std::size_t size() const { return runs_.size(); }
  bool contains(std::int64_t number) const;
  /// Returns the part at or after `from` of the first run that has one; nullopt if there is none.
  std::optional<Run> next(std::int64_t from) const;
  /// Returns all runs: begin to end (exclusive). Runs do not touch each other.
  const std::map<std::int64_t, std::int64_t>& runs() const { return runs_; }

  void add(std::int64_t begin, std::int64_t end);
  void remove(std::int64_t begin, std::int64_t end);

 private:
  std::map<std::int64_t, std::int64_t> runs_;
};

}  // namespace cframefs::frame
