// What the kernel tells of a thread that has called: whether it still waits for the answer.
//
// Thread safety: functions only. Errors: a thread of which nothing can be learned (of another PID namespace, or hidden
// by the mount options of /proc) counts as waiting.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace cframefs::fs {

enum class CallerState : std::uint8_t {
  waits,
  interrupted,  // a SIGINT is pending, which the program handles
  ending,       // a signal ends its process
  no_program,   // it has no memory of its own: it is exiting, or a thread of the kernel
  gone          // the thread has ended
};

/// `thread`: its id, as requests have it; 0: not known.
CallerState caller_state(pid_t thread);

}  // namespace cframefs::fs
