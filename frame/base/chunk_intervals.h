// Numbers of chunks, as runs of neighbours: they cost by how many runs there are, not by how long these are.
//
// Thread safety: as a value. Units: chunk numbers.
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
    std::int64_t end = 0;  // behind the last
    bool operator==(const Run&) const = default;
  };
  static constexpr std::int64_t kEnd = std::numeric_limits<std::int64_t>::max();

  bool empty() const { return runs_.empty(); }
  /// How many runs there are.
  std::size_t size() const { return runs_.size(); }
  bool contains(std::int64_t number) const;
  /// What is there of the first run that does not end before `from`, from there on.
  std::optional<Run> next(std::int64_t from) const;
  /// By where they begin; the values are their ends. They do not touch each other.
  const std::map<std::int64_t, std::int64_t>& runs() const { return runs_; }

  void add(std::int64_t begin, std::int64_t end);
  void remove(std::int64_t begin, std::int64_t end);

 private:
  std::map<std::int64_t, std::int64_t> runs_;
};

}  // namespace cframefs::frame
