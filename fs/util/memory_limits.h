// How much memory the process may use: the least of what the machine has, what its control group and the parents of
// that allow (memory.max and memory.high of version 2, memory.limit_in_bytes of version 1), and RLIMIT_AS.
//
// A group is looked for where /proc/self/cgroup names it, beneath the mounts of /proc/self/mountinfo. In a container
// the mount may show a part of the tree alone, and the path may lead out of it (/..): then the limits of what the mount
// shows uppermost count, which are those of the container.
//
// Thread safety: functions of what the system says at that moment. Units: bytes. Errors: what cannot be read is no
// limit.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace cframefs::fs {

inline constexpr std::uint64_t kNoMemoryLimit = std::numeric_limits<std::uint64_t>::max();

/// What the memory that may be used follows from; tests have their own.
struct MemorySources {
  std::string root;  // what is put before /proc and the mount points
  std::uint64_t physical = kNoMemoryLimit;
  std::uint64_t address_space = kNoMemoryLimit;

  static MemorySources of_system();
};

/// Of the control groups alone.
std::uint64_t control_group_limit(const std::string& root);
std::uint64_t usable_memory(const MemorySources& sources);

/// An eighth of the memory that may be used, at least 8 MiB and at most 1 GiB.
std::uint64_t default_cache_size(std::uint64_t memory);
/// Half as much, but as much up to 64 MiB; at most 512 MiB.
std::uint64_t default_dirty_limit(std::uint64_t memory);

}  // namespace cframefs::fs
