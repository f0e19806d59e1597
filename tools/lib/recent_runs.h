// A direct-mapped cache of results for chunks that the index names repeatedly.
//
// Thread safety: one thread per object. Memory: 256 values.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

namespace cframefs::tools {

template <class Value>
class RecentRuns {
 public:
  struct Slot {
    std::int64_t same = 0;  // as frame::ChunkRun::same
    std::optional<Value> value;
  };

  /// Returns the slot of a chunk. The value is that of another chunk if Slot::same differs.
  Slot& slot(std::int64_t same) {
    return slots_[static_cast<std::size_t>((static_cast<std::uint64_t>(same) * kScatter) >> kShift)];
  }
  std::array<Slot, 256>& slots() { return slots_; }

 private:
  static constexpr std::uint64_t kScatter = 0x9e3779b97f4a7c15U;
  static constexpr unsigned kShift = 64 - 8;

  std::array<Slot, 256> slots_;
};

}  // namespace cframefs::tools
