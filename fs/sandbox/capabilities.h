// The capabilities (capabilities(7)) that the daemon keeps.
//
// Thread safety: the functions change the calling thread, and what it starts later. Errors: io.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

/// Returns whether the process has CAP_SYS_ADMIN. In a user namespace, the kernel may refuse calls that need it.
bool may_administer();

/// Gives up, for ever, all capabilities but those that act for callers. Nothing to do for a daemon that has none.
codec::Result<void> reduce_capabilities();

/// Gives up all capabilities, for ever, in a thread that does not act for callers.
void drop_capabilities();

/// Gives up, for ever, all capabilities but CAP_DAC_READ_SEARCH, which open_by_handle_at(2) needs.
codec::Result<void> keep_capability_to_open();

/// Makes a thread of root open files with the rights of another user (65534), so that it reads only what every user
/// may. Nothing to do for other users.
void read_as_other_user();

}  // namespace cframefs::fs
