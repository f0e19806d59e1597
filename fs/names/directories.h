// Opening and listing directories.
//
// Thread safety: all members may be called concurrently; the handle's mutex guards its list. Ownership: the caller owns
// the handles. Errors: EMFILE when descriptors are short; stale; io.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/coherence/kernel_notices.h"
#include "fs/mount/handles.h"
#include "fs/mount/node_files.h"

namespace cframefs::fs {

class Directories {
 public:
  Directories(MountContext& mount, NodeFiles& node_files, KernelNotices& notices)
      : mount_(mount), node_files_(node_files), notices_(notices) {}

  codec::Result<std::unique_ptr<DirectoryHandle>> open(NodeId id);
  /// Reads the current entries into the handle.
  codec::Result<void> list(DirectoryHandle& handle) const REQUIRES(handle.mutex);
  /// Returns true if the directory is so large that listing it is slow; an estimate before list().
  bool is_large(const DirectoryHandle& handle) REQUIRES(handle.mutex);
  /// Returns the inode number of an entry, as its attributes show it.
  std::uint64_t shown_inode(const DirectoryHandle& handle, const StoredEntry& entry);
  /// Returns the inode number of the directory itself.
  static std::uint64_t own_inode(const DirectoryHandle& handle);
  /// Returns the inode number of the parent directory.
  std::uint64_t parent_inode(const DirectoryHandle& handle) const;
  /// Called before a listing that tells the kernel names to keep.
  void begin_names(DirectoryHandle& handle) const { handle.names_told_at = notices_.names_forgotten() + 1; }
  /// Called at the next request of the handle: the kernel has entered the names by then. Has it look them up again if
  /// it was told so meanwhile, because it takes the names of a listing for ones that it has asked for since.
  void names_arrived(DirectoryHandle& handle);
  /// fsync(2) of a directory.
  codec::Result<void> sync(NodeId id);

 private:
  MountContext& mount_;
  NodeFiles& node_files_;
  KernelNotices& notices_;
};

}  // namespace cframefs::fs
