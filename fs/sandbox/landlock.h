// Landlock: which files a thread may open, which names it may make and remove, and where it may connect, from now on.
//
// Files that are open already stay usable. Thread safety: restrict_access() restricts the calling thread and the
// threads and processes that it starts later, for ever. Errors: io.
#pragma once

#include <cstdint>
#include <span>

#include "codec/base/error.h"

namespace cframefs::fs {

/// A directory that may be used, with all that is beneath it, or a file that may be read.
struct OpenTree {
  int descriptor = -1;         // as O_PATH
  bool is_directory = true;    // else a file, which is read only
  bool is_writable = false;    // files may be written, made and removed
  bool is_executable = false;  // files may be executed
};

/// Returns the version of Landlock in this kernel; 0 if it has none, or one that cannot permit renames between
/// directories (version 1).
unsigned landlock_version();

/// Permits what is in `trees`, and to connect to the TCP ports, and nothing else. Also forbids to mount, to bind a TCP
/// port, and to send signals to other processes, each where the version can. REQUIRES: landlock_version() > 0, no new
/// privileges.
codec::Result<void> restrict_access(std::span<const OpenTree> trees, std::span<const std::uint16_t> ports);

/// Returns whether this kernel's version restricts TCP.
bool restricts_ports();

}  // namespace cframefs::fs
