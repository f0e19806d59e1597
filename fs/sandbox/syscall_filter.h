// Filters of system calls (seccomp): which of them the process may make from now on.
//
// Thread safety: each function restricts the calling thread and the threads that it starts later, for ever.
// Errors: io; invalid if libseccomp cannot make the filter.
#pragma once

#include <cstdint>

#include "codec/base/error.h"

namespace cframefs::fs {

/// What happens to a thread that makes a call that is on no list.
enum class Unexpected : std::uint8_t {
  fails,  // the call fails with ENOSYS
  kills,  // the process ends with SIGSYS
};

/// Returns whether the kernel can filter system calls.
bool has_syscall_filter();

/// Permits what serving a mount needs. Calls that only an attacker makes (starting programs, tracing, mounting, loading
/// code into the kernel, sockets beyond this machine) end the process. REQUIRES: no new privileges.
codec::Result<void> filter_daemon(Unexpected unexpected);

/// Permits only what decoding and encoding need: memory, waiting, and reading files. Other calls fail with EPERM.
codec::Result<void> filter_decoder(Unexpected unexpected);

/// Permits what fs/fuse/page_fill_loop.h needs: reading files, opening them by handle, and receiving. Other calls fail
/// with EPERM.
codec::Result<void> filter_page_filler();

}  // namespace cframefs::fs
