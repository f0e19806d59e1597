// Look-ups: from a name of the mount to a node and its attributes.
//
// Thread safety: all members may be called concurrently. Locks: MountContext::names, shared, from the name on disk to
// the node. Ownership: the kernel counts each look-up, and forgets it with forget(). Errors: ENOENT, ENAMETOOLONG; io.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "fs/attributes/file_attributes.h"
#include "fs/names/name_finder.h"

namespace cframefs::fs {

class Lookups {
 public:
  Lookups(MountContext& mount, NodeFiles& node_files, FileAttributes& attributes, ControlFiles& control)
      : mount_(mount), node_files_(node_files), attributes_(attributes), control_(control), finder_(mount) {}

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name);
  /// Enters a file that the mount has just created, without a look at the disk. `place.name`: its name on disk.
  codec::Result<Attributes> enter_created(const DirEntry& place, const EntryStat& created);
  void forget(NodeId node, std::uint64_t lookups) { node_files_.forget(node, lookups); }
  /// Returns the length in bytes of the longest name that a new entry can have.
  std::size_t longest_name() const;

 private:
  codec::Result<Attributes> lookup_stored(NodeId parent, const HeldDirectory& directory, const std::string& name);
  /// Keeps the kernel from keeping the name, at `place` on disk, if it may lead elsewhere already. `name_changes`: of
  /// the watcher, before the look-up.
  void limit_name(Node& node, const DirEntry& place, std::uint64_t name_changes, Attributes& found) const;
  /// Returns the node at a place if its write-back is committing, else nullptr.
  std::shared_ptr<Node> committing_at(const DirEntry& place) const;

  MountContext& mount_;
  NodeFiles& node_files_;
  FileAttributes& attributes_;
  ControlFiles& control_;
  const NameFinder finder_;
};

}  // namespace cframefs::fs
