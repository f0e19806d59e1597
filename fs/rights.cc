// Rights that the kernel cannot judge from what it is shown.
//
// The kernel decides by the mode and the access control list of each file (default_permissions). Of a sparse frame it
// is shown those of the index; what the frame's directory allows is joined to the mode. An access control list cannot
// be joined to rights of another kind, because a user's groups are not known before the user comes: there the daemon
// looks as the caller.
#include <fcntl.h>
#include <unistd.h>

#include "frame/posix_acl.h"
#include "fs/filesystem.h"

namespace cframefs::fs {

codec::Result<void> Filesystem::check_caller(NodeId id, const Caller& caller, int rights) {
  const std::shared_ptr<Node> node = nodes_.find(id);
  if (!node || node->kind != EntryKind::sparse_frame || caller.user == 0 || !ActingAs::is_possible()) return {};
  const auto folder = attribute_file(*node);
  if (!folder) return codec::Failure(folder.error());
  const auto index = file_with_rights(*node);
  if (!index) return codec::Failure(index.error());
  const std::string acl(frame::kAccessAcl);
  if (!files_.get_attribute((*folder)->fd(), acl) && !files_.get_attribute((*index)->fd(), acl)) return {};
  const ActingAs acting(caller, ActingAs::Groups::all, ActingAs::Rights::callers);
  // To write a sparse frame is to make files in its directory.
  if (auto enters = files_.check_rights((*folder)->fd(), X_OK | (rights & W_OK)); !enters) return enters;
  return files_.check_rights((*index)->fd(), rights);
}

}  // namespace cframefs::fs
