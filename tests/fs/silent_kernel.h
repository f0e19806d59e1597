// A kernel that caches nothing, for tests without a mount.
//
// Thread safety: no state.
#pragma once

#include <string>

#include "fs/coherence/kernel_invalidator.h"

namespace cframefs::fs {

class SilentKernel final : public KernelInvalidator {
 public:
  void invalidate_inode(NodeId /*node*/) override {}
  void invalidate_entry(NodeId /*parent*/, const std::string& /*name*/) override {}
};

}  // namespace cframefs::fs
