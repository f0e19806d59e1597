// What the process of fs/fuse/page_fill_process.h does. Used by that file only.
//
// Thread safety: one thread, in a process of its own. Errors: none; the process ends.
#pragma once

#include <cstdint>
#include <string>

namespace cframefs::fs {

/// A message of the daemon after the first, which is the MountIdentity: have the kernel read the bytes [at, at +
/// length) of a file. `state` changes with the file's content.
struct PageFillRequest {
  std::uint64_t node = 0;
  std::uint64_t state = 0;
  std::uint64_t at = 0;
  std::uint64_t length = 0;
};

/// Waits for the mount, copies it, and fills pages on request, until `messages`, a socket, ends or the mount is gone.
/// Closes all other descriptors. The mount need not serve yet.
void fill_pages(const std::string& mountpoint, int messages, bool is_filtered);

}  // namespace cframefs::fs
