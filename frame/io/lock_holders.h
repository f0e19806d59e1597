// Finds the descriptors that hold flock(2) locks on a file, from /proc.
//
// Programs that may only read a file can lock it, too; only the access mode of the descriptor distinguishes them from
// writers. Thread safety: functions only. Errors: none; a process that cannot be inspected counts as a writer.
#pragma once

#include <functional>

#include <sys/stat.h>

namespace cframefs::frame {

/// Returns true if the file is locked, and only through descriptors that cannot write. False if a holder cannot be
/// inspected: a process of another user, or one outside this /proc.
bool only_readers_lock(const struct stat& file);

/// Sets what examines the locks from now on, in a process that may not look at others. Empty: only_readers_lock()
/// itself. REQUIRES: no other thread runs.
void examine_locks_by(std::function<bool(const struct stat& file)> examine);

}  // namespace cframefs::frame
