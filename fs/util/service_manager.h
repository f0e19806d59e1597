// Messages to a service manager: the protocol of sd_notify(3), one datagram for each state.
//
// Thread safety: const after construction; any thread may call notify().
// Errors: invalid (an address that cannot be used), io. The mount works without a service manager, so callers may go
// on.
#pragma once

#include <string>
#include <string_view>

#include "codec/base/error.h"

namespace cframefs::fs {

class ServiceManager {
 public:
  /// `address`: the socket, a path or, after '@', an abstract name. Empty: there is no service manager.
  explicit ServiceManager(std::string address) : address_(std::move(address)) {}

  /// Sends `state`, such as "READY=1". Does nothing if there is no service manager. Waits at most 5 seconds.
  codec::Result<void> notify(std::string_view state) const;

 private:
  std::string address_;
};

/// Returns $NOTIFY_SOCKET, empty if it is not set. REQUIRES: no other thread changes the environment.
std::string notify_socket();

}  // namespace cframefs::fs
