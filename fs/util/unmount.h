// Unmounts by fusermount3, which may do so for an ordinary user.
//
// Thread safety: may be called by any thread; waits for the program. Errors: false.
#pragma once

#include <cstdint>
#include <string>

namespace cframefs::fs {

enum class Unmounting : std::uint8_t {
  if_unused,  // fails if a program uses the mount
  lazy        // takes it out of the tree now, and ends it when no program uses it any more
};

/// Returns true if the program has unmounted the mount point.
bool unmount_by_helper(const std::string& mountpoint, Unmounting how);

}  // namespace cframefs::fs
