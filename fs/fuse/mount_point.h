// The mount point: whether it can be used, and what a mount would cover. It is a directory, a regular file, or
// /dev/fd/N: a descriptor of /dev/fuse on which the parent process has made the mount already, as privileged programs
// do for programs without rights. Such a mount is unmounted by the parent process.
//
// Thread safety: one thread, before the mount serves. Ownership: MountPoint removes the directories that it has made,
// unless mounted() is called. Errors: invalid, io.
#pragma once

#include <string>
#include <vector>

#include "codec/base/error.h"
#include "fs/tree/source_tree.h"
#include "fs/util/options.h"

namespace cframefs::fs {

class MountPoint {
 public:
  MountPoint() = default;
  ~MountPoint();
  MountPoint(const MountPoint&) = delete;
  MountPoint& operator=(const MountPoint&) = delete;

  /// Finds the mount point, makes it if the option `mkdir` says so, and unmounts there what a dead daemon has left.
  codec::Result<void> open(const MountOptions& options);
  /// Checks that the mount does not contain itself: the mount point must neither be inside the source nor be a
  /// single-file source. (A directory source stays open beneath a mount over it.)
  codec::Result<void> check(const SourceTree& tree, const MountOptions& options);
  /// Called when the mount is made. Keeps the directories that were made, and warns of what the mount covers.
  void mounted();

  /// Returns the resolved path.
  const std::string& path() const { return path_; }
  bool is_file() const { return is_file_; }
  /// Returns true if the parent process has made the mount.
  bool is_descriptor() const { return is_descriptor_; }

 private:
  codec::Result<void> open_descriptor(const std::string& path);
  codec::Result<void> make(const std::string& path, unsigned mode);
  /// Returns the warning of what a mount here covers; empty if nothing.
  std::string covered(const std::string& source) const;

  std::string path_;
  bool is_file_ = false;
  bool is_descriptor_ = false;
  std::string warning_;            // of what the mount covers
  std::vector<std::string> made_;  // the outermost first
};

/// Returns the failure with its path.
codec::Failure failure_at(const std::string& path, codec::Failure failure);
/// Returns the path without links and relative parts.
codec::Result<std::string> real_path(const std::string& path);

}  // namespace cframefs::fs
