// Decides which opens let the kernel read, write and map the file itself: those of passed-through files on disk, where
// the kernel has the means (fs/kernel/backing_files.h).
//
// Thread safety: may be called concurrently. Locks: Node::mutex. Ownership: the handle keeps the backing file. Errors:
// EINVAL for O_DIRECT on a filesystem that has no direct reads and writes.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

class Filesystem;
class FuseAdapter;
struct FileHandle;

/// Returns whether the kernel is to read and write passed-through files itself, if it can. It would move their access
/// times, which `noatime` forbids. REQUIRES: Filesystem::open_source().
bool may_pass_files(Filesystem& filesystem);

/// Gives the handle of an open the backing file of its inode, if the kernel is to read and write the file itself. While
/// a handle of the inode is open, all others get what that one has. `flags`: as open(2).
codec::Result<void> pass_to_kernel(FuseAdapter& adapter, FileHandle& handle, int flags);

}  // namespace cframefs::fs
