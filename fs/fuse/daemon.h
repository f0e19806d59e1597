// The life of a mount: check, mount, go to the background, start threads, serve, unmount.
//
// Threads start only after the process has gone to the background, because a fork copies none. Thread safety: called
// once, from main. Errors: returned before the mount serves; after that they are logged.
#pragma once

#include "codec/base/error.h"
#include "codec/base/library_version.h"
#include "fs/util/options.h"

namespace cframefs::fs {

/// Mounts and serves. In the foreground it returns when the mount has ended. In the background the calling process
/// exits with status 0 once the mount serves (the kernel's INIT was answered), else with 3; the daemon never returns.
/// In the foreground it sends READY=1 and STOPPING=1 to the service manager that $NOTIFY_SOCKET names.
codec::Result<void> mount_and_serve(const MountOptions& options);

/// Returns libfuse in the version that runs.
codec::LibraryVersion fuse_library();

}  // namespace cframefs::fs
