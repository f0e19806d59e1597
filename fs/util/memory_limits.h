// Computes how much memory the process may use: the minimum of the physical memory, the limits of its control group and
// of that group's parents (memory.max and memory.high of version 2, memory.limit_in_bytes of version 1), and RLIMIT_AS.
//
// The path of a group comes from /proc/self/cgroup, the mount point of its hierarchy from /proc/self/mountinfo. In a
// container the mount may show only a part of the hierarchy, and the path may lead out of that part (/..): then the
// limits of the mount's root count, which are those of the container.
//
// Thread safety: functions without state; each reads the current values. Units: bytes. Errors: a value that cannot be
// read counts as no limit.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

namespace cframefs::fs {

inline constexpr std::uint64_t kNoMemoryLimit = std::numeric_limits<std::uint64_t>::max();

/// The inputs of usable_memory(). Tests provide their own.
struct MemorySources {
  std::string root;  // prefix of /proc and of the mount points
  std::uint64_t physical = kNoMemoryLimit;
  std::uint64_t address_space = kNoMemoryLimit;

  static MemorySources of_system();
};

/// Returns the limit of the control groups alone.
std::uint64_t control_group_limit(const std::string& root);
/// Returns the minimum of all limits.
std::uint64_t usable_memory(const MemorySources& sources);

/// Returns 1/8 of `memory`, at least 8 MiB and at most 1 GiB.
std::uint64_t default_cache_size(std::uint64_t memory);
/// Returns half the default cache size, at most 512 MiB, and at least the smaller of the cache size and 64 MiB.
std::uint64_t default_dirty_limit(std::uint64_t memory);

}  // namespace cframefs::fs
