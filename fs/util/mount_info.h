// Identifies the mount at a path by the kernel's mount table. No function here waits for an answer of the mount.
//
// Thread safety: functions without state. Errors: functions return an empty result or false, also if /proc is missing.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

namespace cframefs::fs {

/// One cframefs mount. Plain data, so that it can be sent to another process.
struct MountIdentity {
  std::uint64_t id = 0;         // mount ID of mountinfo(5), which a later mount may get
  std::uint64_t unique_id = 0;  // mount ID that is never reused; 0 before Linux 6.8
  std::uint32_t device_major = 0;
  std::uint32_t device_minor = 0;

  bool operator==(const MountIdentity&) const = default;
};

/// Returns "major:minor", as mountinfo(5) writes it.
std::string device_numbers(const MountIdentity& mount);

/// Returns the topmost cframefs mount at a path. `mountpoint`: a resolved path.
std::optional<MountIdentity> mount_at(const std::string& mountpoint);
/// Returns the type of the filesystem that is mounted at a resolved path; nothing if it is no mount point.
std::optional<std::string> filesystem_at(const std::string& path);
/// Returns the options of the topmost cframefs mount at a path, those of the mount itself: "ro", "nosuid", …
std::vector<std::string> mount_flags_at(const std::string& mountpoint);
/// Returns whether the mount still exists in the mount namespace of this process.
bool is_mounted(const MountIdentity& mount);
/// Returns whether the kernel permits writing to the mount, by the options of its superblock.
bool is_writable(const MountIdentity& mount);
/// Returns whether the file of an open descriptor (O_PATH is enough) lies on this mount.
bool lies_on(int fd, const MountIdentity& mount);

}  // namespace cframefs::fs
