// The extended attributes of the mount: metadata of a frame under user.blosc2., and the backing file's own attributes.
//
//   user.blosc2.info          JSON, the first members of `cframe info --json`
//   user.blosc2.meta.NAME     fixed metalayer, its raw content
//   user.blosc2.vlmeta.NAME   variable-length metalayer, decompressed; for groups of stores from
//                             frame/store/store_files.h; long ones in parts: frame/open/layer_attributes.h
//
// Of these only variable-length metalayers are listed. Programs that copy attributes (cp, rsync, tar) set each listed
// attribute on the copy: attributes that describe how this file is stored would be refused there, or be wrong.
//
// Thread safety: all members may be called concurrently. Ownership: none. Errors: ENODATA; EROFS, EPERM for changes;
// those of AttributeFiles and of the frame.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "fs/attributes/rights.h"
#include "fs/frames/frame_writers.h"

namespace cframefs::fs {

class ExtendedAttributes {
 public:
  ExtendedAttributes(MountContext& mount, NodeFiles& node_files, KernelPages& pages, AttributeFiles& attribute_files,
                     Rights& rights, FrameStates& states, FrameWriters& writers)
      : mount_(mount),
        node_files_(node_files),
        pages_(pages),
        attribute_files_(attribute_files),
        rights_(rights),
        states_(states),
        writers_(writers) {}

  codec::Result<std::vector<std::string>> list(NodeId id);
  codec::Result<std::string> get(NodeId id, const std::string& name);
  /// `flags`: as setxattr(2).
  codec::Result<void> set(NodeId id, const std::string& name, const std::string& value, int flags,
                          const Caller& caller = {}, ChangePermit& permit = free_permit());
  codec::Result<void> remove(NodeId id, const std::string& name, const Caller& caller = {},
                             ChangePermit& permit = free_permit());

 private:
  /// Returns true for ACLs on a mount with uid=, gid= or umask=, whose rights are those shown.
  bool hides(std::string_view name) const;
  /// Changes an attribute of the backing file. The kernel has forgotten the file's attributes then: no report of this
  /// change makes it ignore the answer to a later question for them.
  codec::Result<void> change_stored(Node& node, const std::string& name, const AttributeFiles::ChangeFile& change,
                                    ChangePermit& permit);
  codec::Result<std::shared_ptr<const FrameSnapshot>> snapshot_for_attributes(Node& node);

  MountContext& mount_;
  NodeFiles& node_files_;
  KernelPages& pages_;
  AttributeFiles& attribute_files_;
  Rights& rights_;
  FrameStates& states_;
  FrameWriters& writers_;
};

}  // namespace cframefs::fs
