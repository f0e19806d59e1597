// Creates files whose access times do not move when this program reads them: its own reads are no accesses.
//
// Thread safety: functions only. Errors: io with the system's errno.
#pragma once

#include <string>

#include <sys/stat.h>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Creates a file, open for reading and writing; the name must not exist. The caller closes it.
Result<OpenFile> create_unread(FileOps& files, OpenFile dir, const std::string& path, mode_t mode);

}  // namespace cframefs::frame
