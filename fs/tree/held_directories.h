// Keeps the source directories of nodes open. A file is reached by one name in the descriptor of its directory
// (fs/doc/tree.md).
//
// A directory that is moved remains the same one, and another directory in its place is never mistaken for it: open()
// returns a descriptor only if device and inode are the node's. A bounded number of directories is held, all on the
// source's own filesystem, because a descriptor would keep a filesystem below the source from being unmounted. A
// directory that is not held is opened by its file handle, where the system and the daemon's capabilities allow that,
// or by walking down from a held ancestor.
//
// Thread safety: all members may be called concurrently. Lock order: its mutex after all others. Ownership: callers
// share the descriptors, which stay open as long as they are used. Errors: stale (the directory was moved or removed);
// io.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/io/file_ops.h"
#include "fs/tree/descriptor_reserve.h"
#include "fs/tree/node_table.h"

namespace cframefs::fs {

/// A directory opened with O_PATH.
using HeldDirectory = std::shared_ptr<const frame::Descriptor>;

class HeldDirectories {
 public:
  HeldDirectories(frame::ReadFileOps& files, const NodeTable& nodes) : files_(files), nodes_(nodes) {}

  /// Holds the source for the life of the mount. `most`: the most other directories to hold.
  void start(HeldDirectory root, std::size_t most);
  /// Returns the directory of the node, which may be the directory of a sparse frame.
  codec::Result<HeldDirectory> open(NodeId node);
  /// Closes the directories that no caller uses. Called when descriptors run out.
  void release_unused();
  /// Closes the directory of a node that the kernel has forgotten.
  void forget(NodeId node);

 private:
  struct Held {
    NodeId node = 0;
    HeldDirectory directory;
  };

  using Handle = std::vector<std::uint8_t>;

  HeldDirectory find(NodeId node);
  void keep(NodeId node, const HeldDirectory& directory);
  /// Remembers the file handle of a directory that is about to be closed.
  void let_go(const Held& oldest);
  /// Returns nullptr if the node has no file handle that can be opened.
  codec::Result<HeldDirectory> open_by_handle(NodeId node);
  codec::Result<HeldDirectory> open_beneath(const frame::Descriptor& parent, const NodePlace& place);

  frame::ReadFileOps& files_;
  const NodeTable& nodes_;
  HeldDirectory root_;
  dev_t device_ = 0;  // the source's filesystem
  std::size_t most_ = 1;
  const DescriptorReserve reserve_;

  codec::Mutex mutex_;
  std::list<Held> held_ GUARDED_BY(mutex_);  // most recently used first
  std::unordered_map<NodeId, std::list<Held>::iterator> by_node_ GUARDED_BY(mutex_);
  std::unordered_map<NodeId, Handle> handles_ GUARDED_BY(mutex_);  // of directories that were closed
  std::atomic<bool> opens_handles_{true};                          // false once the system has refused
};

}  // namespace cframefs::fs
