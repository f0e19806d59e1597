// The locks of the kernel on an open file: flock(2) on the whole file, and locks of fcntl(2) on one byte.
//
// Both belong to the open file description and go with its last descriptor. No function waits. On Linux the two kinds
// do not see each other, except on NFS, where flock(2) locks and unlocks each byte of the file.
// Thread safety: functions only. Errors: io.
#pragma once

#include "frame/io/change_file_ops.h"

namespace cframefs::frame {

/// `operation`: LOCK_SH, LOCK_EX or LOCK_UN. Returns false if another holder has a conflicting lock.
Result<bool> try_file_lock(int fd, int operation);
/// As ChangeFileOps::try_byte_lock().
Result<bool> try_byte_lock(int fd, FileOffset at, ByteLock action);

}  // namespace cframefs::frame
