// The process of a mount's guard: waits for the daemon's end, then ends the mount, and does until then what the daemon
// in its sandbox may not do: unmount, open the log file, look at the locks of other processes. Used by
// fs/fuse/mount_guard.h only.
//
// Thread safety: one thread, in a process of its own. Errors: to the log.
#pragma once

#include <string>

#include "fs/util/log.h"

namespace cframefs::fs {

/// Runs the guard and never returns. `settings`: its log. `messages`: a socket that receives GuardMessage and sends
/// GuardAnswer; `life`: the reading end of a pipe that ends with the daemon. Both are above the standard streams.
/// Closes all other descriptors.
[[noreturn]] void guard_mount(const std::string& mountpoint, const LogSettings& settings, int messages, int life);

}  // namespace cframefs::fs
