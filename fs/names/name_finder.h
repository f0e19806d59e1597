// Finds the entry on disk to which a name of the mount leads. A name that a watched directory does not have costs no
// look at the disk, once WatchedNames lists the directory.
//
// Thread safety: all members may be called concurrently. Ownership: values. Errors: those of SourceTree::find().
#pragma once

#include <string>

#include "codec/base/error.h"
#include "fs/mount/mount_context.h"

namespace cframefs::fs {

class NameFinder {
 public:
  explicit NameFinder(MountContext& mount) : mount_(mount) {}

  /// `directory`: that of the node `parent`.
  codec::Result<FoundEntry> find(NodeId parent, const HeldDirectory& directory, const std::string& name) const;

 private:
  void list_names(NodeId parent, const HeldDirectory& directory, std::uint64_t listing) const;

  MountContext& mount_;
};

}  // namespace cframefs::fs
