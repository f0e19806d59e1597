// Opens new files so that their access times do not move when this program reads them: its own reads are no accesses.
//
// Thread safety: functions only. Errors: io with the system's errno.
#pragma once

#include <string>

#include <sys/stat.h>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Creates a file, open for reading and writing; the name must not exist. The caller closes it.
Result<OpenFile> create_unread(FileOps& files, OpenFile dir, const std::string& path, mode_t mode);
/// The same for a file in `dir` without a name (O_TMPFILE), which many filesystems do not support.
Result<OpenFile> create_unread_unnamed(FileOps& files, OpenFile dir, mode_t mode);
/// Opens an entry of `dir` for reading and writing. Does not wait, and follows no link.
Result<OpenFile> open_unread(FileOps& files, OpenFile dir, const std::string& name);

}  // namespace cframefs::frame
