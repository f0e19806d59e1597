// Changes the flags of a mount that exists: mount(8) calls the program with the option remount.
//
// The kernel changes the flags and does not tell the daemon, nor does the daemon of the mount take part: it commits
// what programs have written, and asks for the kernel's table when a change arrives in spite of `ro`
// (MountContext::check_writable()).
//
// Thread safety: called once, from main. Errors: invalid, io; EPERM: the caller is not root.
#pragma once

#include "codec/base/error.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// Sets ro or rw, and the flags nosuid, nodev, noexec, noatime and their opposites, of the mount at `mountpoint`. Other
/// flags stay as they are. REQUIRES: options.daemon.remount.
codec::Result<void> remount(const MountOptions& options);

}  // namespace cframefs::fs
