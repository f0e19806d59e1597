// Access rights of files: what callers may do, and changes of mode, owner and access control list (ACL).
//
// The kernel decides by the mode and the ACL of each file (default_permissions). For a sparse frame the mount shows
// those of the index, restricted by the mode of the frame's directory. An ACL of one cannot be combined with the rights
// of the other in advance, because they depend on the groups of each user: then the daemon checks as the caller. It
// does so, too, for a file that has changed in the last seconds, whose rights the kernel may not know yet.
//
// The owner of a sparse frame's directory may put any file into it, and may replace the index by a file of another user
// after the kernel has checked the caller's rights. So changes apply only to files that belong to the frame.
//
// Thread safety: all members may be called concurrently. Locks: those of AttributeFiles; Node::mutex, briefly.
// Ownership: none. Errors: EACCES, EPERM; stale: another index has replaced that of the frame; io.
#pragma once

#include <optional>
#include <string>

#include "fs/attributes/attribute_files.h"
#include "fs/caller/acting_as.h"
#include "fs/mount/handles.h"

namespace cframefs::fs {

class Rights {
 public:
  Rights(MountContext& mount, AttributeFiles& attribute_files) : mount_(mount), attribute_files_(attribute_files) {}

  /// Checks rights (R_OK, W_OK, X_OK) that the kernel cannot decide from the attributes shown to it. `opened`: the
  /// handle that the caller is to get, or nullptr before the open. EACCES: the caller lacks them.
  codec::Result<void> check_caller(NodeId id, const Caller& caller, int rights, const FileHandle* opened = nullptr);
  /// Changes mode, owner and times.
  codec::Result<void> change_rights(Node& node, const AttributeChanges& changes, const Caller& caller,
                                    ChangePermit& permit);
  /// Sets or removes an ACL. `opened`: the file_with_rights(). `value`: nullptr to remove the ACL.
  codec::Result<void> change_acl(Node& node, frame::OpenFile opened, const std::string& name, const std::string* value,
                                 const Caller& caller);

 private:
  using ChangeFile = AttributeFiles::ChangeFile;
  /// The index of a sparse frame and its directory.
  struct SparseFiles {
    frame::OpenFile directory;
    frame::OpenFile index;
  };
  /// The change of each kind of file of a sparse frame.
  struct SparseChange {
    ChangeFile index;
    ChangeFile chunk;
    ChangeFile directory;
  };

  codec::Result<void> check_sparse(Node& node, const Caller& caller, int rights);
  /// Called before a change of rights. `only_mode`: the new mode, if nothing else changes. EPERM: the kernel may not
  /// know yet that the file is another user's.
  codec::Result<void> check_owner(frame::OpenFile file, const Caller& caller,
                                  std::optional<mode_t> only_mode = std::nullopt);
  codec::Result<void> check_as(const Caller& caller, frame::OpenFile file, int rights);
  codec::Result<void> change_rights_of(frame::OpenFile file, const AttributeChanges& changes, const Caller& caller);
  /// Returns the status of the index. stale: it does not belong to the user that the mount has shown to the kernel.
  codec::Result<struct stat> check_index(Node& node, frame::OpenFile index);
  codec::Result<void> change_sparse_rights(Node& node, const SparseFiles& frame, const AttributeChanges& changes,
                                           const Caller& caller);
  /// Changes the files of a sparse frame, but only the index in a directory of another user. `index`: its status.
  codec::Result<void> change_sparse(const SparseFiles& frame, const struct stat& index, const SparseChange& change);
  codec::Result<void> change_chunk_files(frame::OpenFile directory, const struct stat& index, const ChangeFile& change);

  MountContext& mount_;
  AttributeFiles& attribute_files_;
};

}  // namespace cframefs::fs
