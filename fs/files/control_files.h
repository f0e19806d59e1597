// The directory .cframefs of a mount with stats=on. No listing of the root shows it.
//
//   stats.json    numbers for programs                  metrics       the same for Prometheus (OpenMetrics)
//   busiest.json  the files with the most bytes read    config        the options in effect, as -o takes them
//                 and written; for the mount's owner    drop_caches   1 written into it drops what is cached
//
// Each open takes a snapshot of the contents. busiest.json and drop_caches belong to the user of the daemon alone:
// names of files may be secret from other users of the mount.
//
// Thread safety: all members may be called concurrently. Ownership: none. Errors: ENOENT; EROFS; invalid.
#pragma once

#include <array>
#include <string>

#include "fs/coherence/kernel_pages.h"
#include "fs/files/mount_report.h"
#include "fs/mount/handles.h"
#include "fs/mount/mount_context.h"
#include "fs/write/write_back.h"

namespace cframefs::fs {

/// The names in the directory, in the order of a listing.
inline constexpr std::array<const char*, 5> kControlNames = {"busiest.json", "config", "drop_caches", "metrics",
                                                             "stats.json"};

class ControlFiles {
 public:
  ControlFiles(MountContext& mount, WriteBackShared& write_back, KernelPages& pages)
      : mount_(mount), write_back_(write_back), pages_(pages), where_(MountPlace::of(mount.options)) {}

  /// Looks a name up in the root or in the control directory.
  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  /// Opens a control file. `flags`: as open(2). EROFS: the file cannot be written.
  codec::Result<void> open(FileHandle& handle, const std::string& name, int flags);
  /// Returns the counters as one line of JSON.
  std::string statistics_line() const;
  /// Writes into drop_caches.
  codec::Result<void> write(codec::ByteView bytes);

 private:
  std::string content(const std::string& name);
  /// Drops decoded blocks, decoded indexes, idle memory, and the kernel's pages of files.
  void drop_caches();

  MountContext& mount_;
  WriteBackShared& write_back_;
  KernelPages& pages_;
  const MountPlace where_;
};

}  // namespace cframefs::fs
