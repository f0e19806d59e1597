// Symbolic links: the mount shows a target under the name that it gives to the target's file.
//
// Thread safety: all members may be called concurrently. Locks: Node::mutex, briefly; MountContext::names, shared,
// while a link is opened. Ownership: none. Errors: stale; io.
#pragma once

#include <cstdint>
#include <string>

#include "fs/mount/node_files.h"

namespace cframefs::fs {

class SymbolicLinks {
 public:
  SymbolicLinks(MountContext& mount, NodeFiles& node_files) : mount_(mount), node_files_(node_files) {}

  /// Returns the target that the link shows.
  codec::Result<std::string> read_link(NodeId id);
  /// Returns the length of the target that a link shows. `stored`: the length of its stored target.
  std::uint64_t shown_link_size(Node& node, std::uint64_t stored) EXCLUDES(mount_.names);

 private:
  /// Returns the target that a link in `directory` shows. `target`: the stored target.
  std::string shown_target(NodeId directory, const std::string& target);
  /// Walks a path from `directory`, one name after the other, and returns the directory. EXDEV: it leaves the source.
  codec::Result<HeldDirectory> walk(NodeId directory, std::string path);

  MountContext& mount_;
  NodeFiles& node_files_;
};

}  // namespace cframefs::fs
