// Which mount lies at a place, told by the kernel's table of mounts: nothing here waits for an answer of the mount.
//
// Thread safety: functions only. Errors: an empty answer; without /proc nothing can be told.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

namespace cframefs::fs {

/// One mount of this program. Plain data, so that it can be sent to another process.
struct MountIdentity {
  std::uint64_t id = 0;         // its number in mountinfo(5), which a later mount may get
  std::uint64_t unique_id = 0;  // a number that is never used again; 0 before Linux 6.8
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;

  bool operator==(const MountIdentity&) const = default;
};

/// "major:minor", as the kernel writes it.
std::string device_numbers(const MountIdentity& mount);

/// The uppermost mount of this program at a place. `mountpoint`: resolved.
std::optional<MountIdentity> mount_at(const std::string& mountpoint);
/// Whether the mount still exists where this process can see it.
bool is_mounted(const MountIdentity& mount);
/// Whether the open descriptor (O_PATH is enough) is the root, or a file, of this mount.
bool lies_on(int fd, const MountIdentity& mount);

}  // namespace cframefs::fs
