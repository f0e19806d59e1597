// POSIX access control lists as the extended attributes system.posix_acl_access and system.posix_acl_default hold them:
// a version, then entries of a tag, permissions and an id (acl(5), and Linux' include/uapi/linux/posix_acl_xattr.h).
//
// Thread safety: pure functions. Errors: none; a value of another layout is returned as it is, and allows nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cframefs::frame {

inline constexpr std::string_view kAclPrefix = "system.posix_acl_";  // of both kinds
inline constexpr std::string_view kAccessAcl = "system.posix_acl_access";

/// Permissions of one entry: R_OK, W_OK, X_OK.
using MapPermissions = std::function<unsigned(unsigned)>;

/// The list with other permissions in each entry, the mask among them.
std::string with_permissions(const std::string& acl, const MapPermissions& map);

/// What at least one user may do, and what every user may do, root not counted.
struct AclBounds {
  unsigned most = 0;
  unsigned least = 0;
};
AclBounds bounds_of(const std::string& acl);

/// What takes the right to enter a directory: a user that may read a file in it may enter it, too.
constexpr unsigned enter_if_readable(unsigned permissions) {
  return (permissions & 4U) != 0 ? (permissions & 4U) | 1U : 0;
}

}  // namespace cframefs::frame
