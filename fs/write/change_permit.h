// A permission that a request asks for before it changes data that others see. When a caller is killed while its
// request waits, the request is answered early, and what it wanted to write must not overwrite what the next program
// writes.
//
// Thread safety: belongs to the thread that serves the request. Ownership: none. Errors: io with EINTR.
#pragma once

#include "codec/base/error.h"

namespace cframefs::fs {

class ChangePermit {
 public:
  virtual ~ChangePermit() = default;
  /// Begins a change. EINTR if the request has been answered early; the caller must then change nothing.
  virtual codec::Result<void> begin() = 0;
  /// Ends a change: the request may be answered early again.
  virtual void end() = 0;
};

/// The permit of a change that no request of the kernel asks for.
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
