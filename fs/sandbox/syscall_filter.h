// Filters of system calls (seccomp): which of them the process may make from now on.
//
// Thread safety: each function restricts the calling thread and the threads that it starts later, for ever.
// Errors: io; invalid if libseccomp cannot make the filter.
#pragma once

#include <cstdint>
#include <string>

#include "codec/base/error.h"

namespace cframefs::fs {

/// What happens to a thread that makes a call that is on no list.
enum class Unexpected : std::uint8_t {
  fails,  // the call fails with ENOSYS
  kills,  // the process ends with SIGSYS
};

/// Returns whether the kernel can filter system calls.
bool has_syscall_filter();

/// Returns the name of a system call of this processor, or its number if libseccomp does not know it.
std::string name_of_call(int number);

/// Permits what serving a mount needs. Calls that only an attacker makes (starting programs, tracing, mounting, loading
/// code into the kernel, sockets beyond this machine) end the process. REQUIRES: no new privileges.
codec::Result<void> filter_daemon(Unexpected unexpected);

/// Permits, in the thread that talks to servers, what libcurl, TLS and the resolver of names need: sockets of TCP and
/// UDP, and reading files. Calls that only an attacker makes end the process. REQUIRES: no new privileges.
codec::Result<void> filter_fetcher(Unexpected unexpected);

/// What a thread decodes from.
enum class DecodesFrom : std::uint8_t {
  files,
  servers,  // it waits for what the thread that talks to servers fetches, and keeps that in the disk cache
};

/// Permits only what decoding and encoding need: memory, waiting, and reading files; from servers also changing files,
/// starting threads, and asking the guard. Other calls fail with EPERM.
codec::Result<void> filter_decoder(Unexpected unexpected, DecodesFrom from);

/// Permits what fs/fuse/page_fill_loop.h needs: reading files, opening them by handle, and receiving. Other calls fail
/// with EPERM.
codec::Result<void> filter_page_filler();

}  // namespace cframefs::fs
