// Names that are given only if they are free, also on filesystems without the flags of renameat2(2): NFS, 9p and most
// FUSE filesystems answer EINVAL to RENAME_NOREPLACE.
//
// Thread safety: functions only. Errors: io with the system's errno; EEXIST: the name is taken.
#pragma once

#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Renames an entry. Without RENAME_NOREPLACE the name is looked at first, and what another program puts there between
/// the look and the renaming is replaced, as rename(2) does.
Result<void> rename_to_free_name(FileOps& files, int from_dir, const std::string& from, int to_dir,
                                 const std::string& to);

/// Gives a new file its name in the same directory. Without RENAME_NOREPLACE by a link, which never replaces another
/// file; without links, too, as rename_to_free_name().
Result<void> give_free_name(FileOps& files, int dir, const std::string& temporary, const std::string& name);

}  // namespace cframefs::frame
