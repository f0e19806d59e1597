// What the guard of a mount does in its own process: waits for the daemon's end, then ends the mount. Used by
// fs/fuse/mount_guard.h alone.
//
// Thread safety: one thread, in a process of its own. Errors: to the system log.
#pragma once

#include <cstdint>
#include <string>

#include "fs/util/mount_info.h"

namespace cframefs::fs {

enum class GuardNews : std::uint8_t {
  mounted,   // `mount` is the one to look after
  released,  // end the mount now, whatever the daemon does
  dismissed  // the mount has ended in order
};

/// What the daemon sends to its guard.
struct GuardMessage {
  GuardNews news = GuardNews::mounted;
  MountIdentity mount;
};

/// Those that would end the process. Its children inherit that.
void ignore_signals();

/// Names the process, for `ps`, the guard of the mount point. Its children inherit the name.
void name_guard(const std::string& mountpoint);

/// Makes the process the guard and never returns. `messages`: a socket that brings GuardMessage; `life`: the reading
/// end of a pipe that ends with the daemon. Both are above the standard streams. Everything else is closed.
[[noreturn]] void guard_mount(const std::string& mountpoint, int messages, int life);

}  // namespace cframefs::fs
