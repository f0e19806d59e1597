// Landlock: which files the process may open, and which names it may make and remove, from now on.
//
// Files that are open already stay usable. Thread safety: restrict_files() restricts the calling thread and the threads
// and processes that it starts later, for ever. Errors: io.
#pragma once

#include <span>

#include "codec/base/error.h"

namespace cframefs::fs {

/// A directory whose files may be read, with all that is beneath it.
struct OpenTree {
  int directory = -1;          // an open directory, as O_PATH
  bool is_writable = false;    // files may be written, made and removed
  bool is_executable = false;  // files may be executed
};

/// Returns the version of Landlock in this kernel; 0 if it has none, or one that cannot permit renames between
/// directories (version 1).
unsigned landlock_version();

/// Permits what is in `trees`, and nothing else. Also forbids to mount, to connect to a TCP port, and to send signals
/// to other processes, each where the version can. REQUIRES: landlock_version() > 0, no new privileges.
codec::Result<void> restrict_files(std::span<const OpenTree> trees);

}  // namespace cframefs::fs
