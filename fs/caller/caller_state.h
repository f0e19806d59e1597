// Tells whether a thread that has sent a request still waits for the answer, and what the kernel permits it.
//
// Thread safety: functions without state. Errors: a thread whose state cannot be read (in another PID namespace, or
// hidden by the mount options of /proc) counts as waiting, and as one that may bypass rights.
#pragma once

#include <cstdint>

#include <sys/types.h>

namespace cframefs::fs {

enum class CallerState : std::uint8_t {
  waits,
  interrupted,  // a SIGINT is pending, which the program handles
  ending,       // a signal is ending its process
  no_program,   // the thread has no memory of its own: it is exiting, or a kernel thread
  gone          // the thread has ended
};

/// `thread`: the thread ID of a request; 0: unknown, counts as waiting.
CallerState caller_state(pid_t thread);

/// Returns true if the thread has a capability by which the kernel may let it read or write any file. 0: unknown, true.
bool may_bypass_rights(pid_t thread);
/// The same for changes of mode and owner.
bool may_act_as_owner(pid_t thread);

}  // namespace cframefs::fs
