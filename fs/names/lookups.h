// Look-ups: from a name of the mount to a node and its attributes.
//
// Thread safety: all members may be called concurrently. Locks: MountContext::names, shared, from the name on disk to
// the node. Ownership: the kernel counts each look-up, and forgets it with forget(). Errors: ENOENT, ENAMETOOLONG; io.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include <sys/stat.h>

#include "fs/attributes/file_attributes.h"

namespace cframefs::fs {

class Lookups {
 public:
  Lookups(MountContext& mount, NodeFiles& node_files, FileAttributes& attributes, ControlFiles& control)
      : mount_(mount), node_files_(node_files), attributes_(attributes), control_(control) {}

  codec::Result<Attributes> lookup(NodeId parent, const std::string& name) { return lookup(parent, name, nullptr); }
  /// Looks up a file that the mount has just created. `created`: its status on disk.
  codec::Result<Attributes> lookup_created(NodeId parent, const std::string& name, const struct stat& created) {
    return lookup(parent, name, &created);
  }
  void forget(NodeId node, std::uint64_t lookups) { node_files_.forget(node, lookups); }
  /// Returns the length in bytes of the longest name that a new entry can have.
  std::size_t longest_name() const;

 private:
  codec::Result<Attributes> lookup(NodeId parent, const std::string& name, const struct stat* created);
  codec::Result<Attributes> lookup_stored(NodeId parent, const HeldDirectory& directory, const std::string& name,
                                          const struct stat* created);
  /// Returns the node at a place if its write-back is committing, else nullptr.
  std::shared_ptr<Node> committing_at(const DirEntry& place) const;

  MountContext& mount_;
  NodeFiles& node_files_;
  FileAttributes& attributes_;
  ControlFiles& control_;
};

}  // namespace cframefs::fs
