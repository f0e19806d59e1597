// Starts small processes that belong to a mount and are no children of the daemon: its guard, and the one that fills
// pages.
//
// Thread safety: start_helper() forks; the process gets the calling thread alone, and a lock that another thread holds
// stays locked in it. Errors: io.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>

#include "codec/base/error.h"

namespace cframefs::fs {

/// Starts a process that runs `body` and ends when that returns. It ignores the signals that a terminal or a service
/// manager sends to end the daemon. `name`: what `ps` shows as its command, at most 15 bytes; `title`: as its command
/// line. REQUIRES: no other thread runs.
codec::Result<void> start_helper(const char* name, const std::string& title, const std::function<void()>& body);

/// Closes everything inherited from the daemon but the descriptors `kept`, which are above the standard streams:
/// terminal, device of the mount, pipes to the daemon's parent, working directory. Called in `body`.
void leave_daemon(std::initializer_list<int> kept);

}  // namespace cframefs::fs
