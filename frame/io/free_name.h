// Renames that never replace a file, also on filesystems without the flags of renameat2(2): NFS, 9p and most FUSE
// filesystems return EINVAL for RENAME_NOREPLACE.
//
// Thread safety: functions only. Errors: io with the system's errno; EEXIST if the name exists.
#pragma once

#include <cstdint>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Returns true for what renameat2(2) answers to flags on a filesystem without them.
bool knows_no_rename_flags(const Error& error);

/// Renames an entry to a name that must not exist. Without RENAME_NOREPLACE checks first and then renames; a file that
/// another program creates between the two steps is replaced.
Result<void> rename_to_free_name(FileOps& files, OpenFile from_dir, const std::string& from, OpenFile to_dir,
                                 const std::string& to);

enum class NameGiven : std::uint8_t {
  by_rename,
  by_link,  // a FUSE filesystem may show the name as another file than the descriptors that were opened before
};

/// Gives a new file its final name in the same directory; the name must not exist. Without RENAME_NOREPLACE makes a
/// link, which never replaces a file; if the filesystem has no links either, works as rename_to_free_name().
Result<NameGiven> give_free_name(FileOps& files, OpenFile dir, const std::string& temporary, const std::string& name);

}  // namespace cframefs::frame
