// What a request asks before it changes what others see. A caller that is killed while its request waits has been
// answered for: what it wanted to write must not appear after that, over what the next program writes.
//
// Thread safety: belongs to the thread that serves the request. Ownership: none. Errors: io with EINTR.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

class ChangePermit {
 public:
  virtual ~ChangePermit() = default;
  /// The change begins. EINTR if the request has been answered for; then nothing must be changed.
  virtual codec::Result<void> begin() = 0;
  /// All of it has been done: the request may be answered for again.
  virtual void end() = 0;
};

/// Of a change that no request of the kernel asks for.
class FreePermit final : public ChangePermit {
 public:
  codec::Result<void> begin() override { return {}; }
  void end() override {}
};

inline ChangePermit& free_permit() {
  static FreePermit permit;
  return permit;
}

}  // namespace cframefs::fs
