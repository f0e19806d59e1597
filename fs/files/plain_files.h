// Passed-through files: the operations on their handles go to the file on disk.
//
// A change through the mount leaves the kernel's pages valid although the state on disk differs afterwards:
// KernelPages::with_self_change() records the new state. Thread safety: the node's change_mutex serialises a file's
// changes. Ownership: the caller owns the handles. Errors: io with the system's errno; stale. Units: bytes.
#pragma once

#include <cstdint>
#include <memory>

#include "fs/coherence/kernel_pages.h"
#include "fs/mount/node_files.h"
#include "fs/write/change_permit.h"

namespace cframefs::fs {

class PlainFiles {
 public:
  PlainFiles(MountContext& mount, NodeFiles& node_files, KernelPages& pages)
      : mount_(mount), node_files_(node_files), pages_(pages) {}

  codec::Result<std::unique_ptr<FileHandle>> open(std::unique_ptr<FileHandle> handle, int flags);
  codec::Result<void> read(FileHandle& handle, std::uint64_t at, std::size_t length, Reply& reply);
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, codec::ByteView bytes, bool append);
  codec::Result<void> allocate(FileHandle& handle, int mode, std::uint64_t at, std::uint64_t length);
  /// Changes the size. `handle`: an open handle of the node, or nullptr.
  codec::Result<void> resize(Node& node, FileHandle* handle, std::uint64_t size, ChangePermit& permit);

 private:
  /// Opens the node's file, by a descriptor of a program if it has no name any more.
  codec::Result<NodeFiles::SharedFile> open_file(Node& node, int flags);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
};

}  // namespace cframefs::fs
