// What a daemon and the guard of its mount send each other, through a socket that keeps the bounds of messages.
//
// Thread safety: plain values.
#pragma once

#include <cstdint>

#include <sys/types.h>

#include "fs/util/mount_info.h"

namespace cframefs::fs {

enum class GuardNews : std::uint8_t {
  mounted,    // `mount` is the mount to guard
  released,   // end the mount now, even if the daemon lives
  dismissed,  // the mount has ended normally

  // Requests, which the guard answers.
  unmount_unused,  // if no program uses the mount
  unmount,         // take the mount out of the tree
  open_log,        // the answer carries a descriptor of the log file
  examine_locks,   // do only readers lock the file of `device` and `inode`?
  open_file,       // the answer carries a descriptor of file `file` of GuardDuties, for reading
  run_program,     // the answer carries a pipe, from which read_output() reads
};

/// A message of the daemon to its guard.
struct GuardMessage {
  GuardNews news = GuardNews::mounted;
  MountIdentity mount;
  std::uint64_t number = 0;  // of a request
  dev_t device = 0;
  ino_t inode = 0;
  std::uint32_t file = 0;
  std::int32_t refused_call = -1;  // with `released`: the system call at which the sandbox ends the daemon
};

/// The answer to a request.
struct GuardAnswer {
  std::uint64_t number = 0;  // of the request
  bool done = false;
  int error = 0;  // errno, if no descriptor can be had
};

}  // namespace cframefs::fs
