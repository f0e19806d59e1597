// How a daemon enters its sandbox: what the source needs from then on, and what the guard does for it.
//
// Thread safety: before other threads of the filesystem. Ownership: borrows the guard and the source, which live as
// long as the mount. Errors: those of Sandbox and of RemoteSource::confine().
#pragma once

#include "fs/fuse/mount_guard.h"
#include "fs/sandbox/sandbox.h"

namespace cframefs::frame {
class RemoteSource;
}  // namespace cframefs::frame

namespace cframefs::fs {

/// The source of a mount, as far as the sandbox is concerned.
struct ConfinedSource {
  int descriptor = -1;                    // of the system: its root, an open directory or file
  bool is_written = false;                // as far as the mount is
  bool passes_files = false;              // the kernel opens its files in the daemon's place
  frame::RemoteSource* remote = nullptr;  // on a server
  const MountOptions& options;
};

/// Returns what the guard of a mount has to do beside ending it.
GuardDuties guard_duties(const MountOptions& options, const LogSettings& log);

/// Gives up what serving does not need. What a process in the sandbox may not do, the guard does from now on.
/// REQUIRES: sandbox.is_on().
codec::Result<void> enter_sandbox(const Sandbox& sandbox, MountGuard& guard, const ConfinedSource& source);

}  // namespace cframefs::fs
