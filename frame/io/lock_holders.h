// Which descriptors hold flock(2) locks on a file, as the system tells in /proc.
//
// A program that may only read a file can lock it as well as one that writes it; the lock does not tell them apart, the
// descriptor does. Thread safety: functions only. Errors: none; what cannot be looked into counts as a writer.
#pragma once

#include <sys/stat.h>

namespace cframefs::frame {

/// Whether locks on the file are held, and all of them through descriptors that cannot write. False if a holder cannot
/// be looked into: a process of another user, or none that this system shows.
bool only_readers_lock(const struct stat& file);

}  // namespace cframefs::frame
