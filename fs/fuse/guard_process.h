// The process of a mount's guard: waits for the daemon's end, then ends the mount. Used by fs/fuse/mount_guard.h only.
//
// Thread safety: one thread, in a process of its own. Errors: to the log.
#pragma once

#include <cstdint>
#include <string>

#include "fs/util/log.h"
#include "fs/util/mount_info.h"

namespace cframefs::fs {

enum class GuardNews : std::uint8_t {
  mounted,   // `mount` is the mount to guard
  released,  // end the mount now, even if the daemon lives
  dismissed  // the mount has ended normally
};

/// A message of the daemon to its guard.
struct GuardMessage {
  GuardNews news = GuardNews::mounted;
  MountIdentity mount;
};

/// Ignores the signals that would end the process. Children inherit this.
void ignore_signals();

/// Sets the name of the process that `ps` shows: "cframefs: guard of MOUNTPOINT". Children inherit it.
void name_guard(const std::string& mountpoint);

/// Runs the guard and never returns. `settings`: its log. `messages`: a socket that receives GuardMessage; `life`: the
/// reading end of a pipe that ends with the daemon. Both are above the standard streams. Closes all other descriptors.
[[noreturn]] void guard_mount(const std::string& mountpoint, const LogSettings& settings, int messages, int life);

}  // namespace cframefs::fs
