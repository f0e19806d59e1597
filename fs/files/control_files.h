// The directory .cframefs of a mount with stats=on: stats.json for people and scripts, metrics for Prometheus. No
// listing shows it. Each open takes a snapshot of the counters.
//
// Thread safety: all members may be called concurrently. Ownership: none. Errors: ENOENT.
#pragma once

#include <string>

#include "fs/mount/handles.h"
#include "fs/mount/mount_context.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

class ControlFiles {
 public:
  ControlFiles(MountContext& mount, WriteBackShared& write_back) : mount_(mount), write_back_(write_back) {}

  /// Looks a name up in the root or in the control directory.
  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  /// Returns the present content of a control file.
  std::string content(const std::string& name);

 private:
  MountContext& mount_;
  WriteBackShared& write_back_;
};

}  // namespace cframefs::fs
