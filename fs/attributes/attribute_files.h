// The files on disk that hold the attributes of a node, and changes of them that leave the content alone.
//
// Thread safety: all members may be called concurrently. Locks: MountContext::names, shared, while a file is opened;
// Node::change_mutex and the commit's mutex during a change. Ownership: callers share the descriptors. Errors: stale;
// io.
#pragma once

#include <functional>
#include <string>

#include "fs/coherence/kernel_pages.h"
#include "fs/mount/node_files.h"

namespace cframefs::fs {

class AttributeFiles {
 public:
  using SharedFile = NodeFiles::SharedFile;
  using FindFile = std::function<codec::Result<SharedFile>()>;
  using ChangeFile = std::function<codec::Result<void>(frame::OpenFile file)>;

  AttributeFiles(MountContext& mount, NodeFiles& node_files, KernelPages& pages)
      : mount_(mount), node_files_(node_files), pages_(pages) {}

  /// Returns a descriptor for the node's attributes, which may be O_PATH. Finds an open file that has lost its name,
  /// too.
  codec::Result<SharedFile> attribute_file(Node& node) EXCLUDES(mount_.names);
  /// Returns the file whose mode, owner and times are the node's: the index of a sparse frame, else the file itself.
  codec::Result<SharedFile> file_with_rights(Node& node) EXCLUDES(mount_.names);
  /// Returns the file that has the node's extended attribute `name`.
  codec::Result<SharedFile> file_with_attribute(Node& node, const std::string& name) EXCLUDES(mount_.names);
  /// Makes a change that leaves the content alone to the file that `find` opens, never during a commit of the node.
  codec::Result<void> change_file(Node& node, KernelPages::SelfChange what, const FindFile& find,
                                  const ChangeFile& wanted, ChangePermit& permit);

 private:
  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
};

}  // namespace cframefs::fs
