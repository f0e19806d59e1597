// The process of a mount's guard: waits for the daemon's end, then ends the mount, and does until then what the daemon
// in its sandbox may not do: unmount, open the log file, look at the locks of other processes, open the files of
// credentials, run the program that gives some. Used by fs/fuse/mount_guard.h only.
//
// Thread safety: one thread, in a process of its own. Errors: to the log.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "codec/base/error.h"
#include "fs/util/log.h"

namespace cframefs::fs {

/// What a guard does for its daemon, beside ending the mount. It is all fixed when the guard starts: the daemon names
/// no path and no command.
struct GuardDuties {
  LogSettings log;                                            // of the guard, and of the file that it opens
  std::vector<std::string> files;                             // that it opens for reading
  std::function<codec::Result<std::string>()> run_program{};  // in a process of its own; may be empty
};

/// Runs the guard and never returns. `duties`: their paths are absolute. `messages`: a socket that receives
/// GuardMessage and sends GuardAnswer; `life`: the reading end of a pipe that ends with the daemon. Both are above the
/// standard streams. Closes all other descriptors.
[[noreturn]] void guard_mount(const std::string& mountpoint, const GuardDuties& duties, int messages, int life);

}  // namespace cframefs::fs
