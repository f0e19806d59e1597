// The directories of the source that nodes stand for, held open: what lies in one is reached by one name in its
// descriptor (fs/doc/tree.md).
//
// A directory that is moved goes on being the same one, and one that another takes the place of is never mistaken for
// it: a descriptor is handed out only if device and inode are the node's. A bounded number is held, all of the source's
// own filesystem, for a descriptor would keep another one below it from being unmounted. One that is not held is opened
// by its file handle, where the system and the daemon's rights allow, else by walking down from an ancestor that is
// held.
//
// Thread safety: all members may be called at once. Lock order: its mutex after all others. Ownership: callers share
// the descriptors, which stay open for as long as they are used. Errors: stale (the directory is not where it was); io.
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

/// Open with O_PATH.
using HeldDirectory = std::shared_ptr<const frame::Descriptor>;

class HeldDirectories {
 public:
  HeldDirectories(frame::FileOps& files, const NodeTable& nodes) : files_(files), nodes_(nodes) {}

  /// The source itself is held for good. `most`: of the others.
  void start(HeldDirectory root, std::size_t most);
  /// The directory, or the directory of a sparse frame, that the node stands for.
  codec::Result<HeldDirectory> open(NodeId node);
  /// Closes those that no caller uses, for descriptors are short.
  void release_unused();
  /// The kernel has forgotten the node.
  void forget(NodeId node);

 private:
  struct Held {
    NodeId node = 0;
    HeldDirectory directory;
  };

  using Handle = std::vector<std::uint8_t>;

  HeldDirectory find(NodeId node);
  void keep(NodeId node, const HeldDirectory& directory);
  /// Holds less, and remembers how to open what is closed.
  void let_go(const Held& oldest);
  /// Null: by no handle.
  codec::Result<HeldDirectory> open_by_handle(NodeId node);
  codec::Result<HeldDirectory> open_beneath(const frame::Descriptor& parent, const NodePlace& place);

  frame::FileOps& files_;
  const NodeTable& nodes_;
  HeldDirectory root_;
  dev_t device_ = 0;  // of the source
  std::size_t most_ = 1;
  const DescriptorReserve reserve_;

  codec::Mutex mutex_;
  std::list<Held> held_ GUARDED_BY(mutex_);  // used last comes first
  std::unordered_map<NodeId, std::list<Held>::iterator> by_node_ GUARDED_BY(mutex_);
  std::unordered_map<NodeId, Handle> handles_ GUARDED_BY(mutex_);  // of those that were closed
  std::atomic<bool> opens_handles_{true};                          // unless the daemon may not
};

}  // namespace cframefs::fs
