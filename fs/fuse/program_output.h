// The end of a program that the guard has run for the daemon, through a pipe: what it printed, or why it failed.
//
// Thread safety: functions. Ownership: callers own the descriptors. Errors: those of the program; io ETIMEDOUT if they
// do not come in time, EIO if the guard's process ended before.
#pragma once

#include <string>

#include "codec/base/error.h"

namespace cframefs::fs {

/// Writes the output, or the error, and nothing if the reader has gone.
void write_output(int pipe, const codec::Result<std::string>& output);

/// Reads it, at most somewhat more than a minute long.
codec::Result<std::string> read_output(int pipe);

}  // namespace cframefs::fs
