// Counts the errors with which requests were answered, by the action that they call for: damage, a full disk and a lock
// call for different ones, and an interrupted read for none.
//
// Thread safety: all members may be called concurrently.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "codec/base/error.h"

namespace cframefs::fs {

/// The requests whose errors are counted. `sync`: fsync(2) and close(2), which commit.
enum class Operation : std::uint8_t { open, read, write, sync };
inline constexpr std::array<const char*, 4> kOperationNames = {"open", "read", "write", "sync"};

enum class ErrorClass : std::uint8_t {
  corrupt,
  unsupported,
  stale,        // another program has changed or replaced the file
  invalid,      // the arguments do not fit the file
  denied,       // rights, or a file that cannot be written
  interrupted,  // the caller no longer waits
  locked,       // another program holds the frame's lock
  no_space,     // the disk, the quota or a limit of the file size
  io
};
inline constexpr std::array<const char*, 9> kErrorClassNames = {
    "corrupt", "unsupported", "stale", "invalid", "denied", "interrupted", "locked", "no_space", "io"};

ErrorClass class_of(const codec::Error& error);

class ErrorCounters {
 public:
  void add(Operation operation, const codec::Error& error) {
    counter(operation, class_of(error)).fetch_add(1, std::memory_order_relaxed);
  }
  std::uint64_t count(Operation operation, ErrorClass kind) const {
    return counters_[index(operation, kind)].load(std::memory_order_relaxed);
  }
  /// Returns the errors of all kinds.
  std::uint64_t count(Operation operation) const {
    std::uint64_t sum = 0;
    for (std::size_t kind = 0; kind < kErrorClassNames.size(); ++kind)
      sum += count(operation, static_cast<ErrorClass>(kind));
    return sum;
  }

 private:
  static std::size_t index(Operation operation, ErrorClass kind) {
    return static_cast<std::size_t>(operation) * kErrorClassNames.size() + static_cast<std::size_t>(kind);
  }
  std::atomic<std::uint64_t>& counter(Operation operation, ErrorClass kind) {
    return counters_[index(operation, kind)];
  }

  std::array<std::atomic<std::uint64_t>, kOperationNames.size() * kErrorClassNames.size()> counters_{};
};

}  // namespace cframefs::fs
