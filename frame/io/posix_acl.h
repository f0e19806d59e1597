// POSIX access control lists as the extended attributes system.posix_acl_access and system.posix_acl_default hold them:
// a version, then entries of a tag, permissions and an id (acl(5), and Linux' include/uapi/linux/posix_acl_xattr.h).
//
// Thread safety: pure functions. Errors: none; a value with another layout is returned unchanged and grants nothing.
#pragma once

#include <functional>
#include <string>
#include <string_view>

namespace cframefs::frame {

inline constexpr std::string_view kAclPrefix = "system.posix_acl_";  // of both attributes
inline constexpr std::string_view kAccessAcl = "system.posix_acl_access";

/// Maps the permissions of one entry: bits R_OK, W_OK, X_OK.
using MapPermissions = std::function<unsigned(unsigned)>;

/// Returns the list with mapped permissions in each entry, including the mask.
std::string with_permissions(const std::string& acl, const MapPermissions& map);

/// Permissions that a list grants, root not counted.
struct AclBounds {
  unsigned most = 0;   // to at least one user
  unsigned least = 0;  // to every user
};
AclBounds bounds_of(const std::string& acl);

/// Returns the permissions of a directory for a user with `permissions` on its file: read, and search if read is
/// allowed.
constexpr unsigned enter_if_readable(unsigned permissions) {
  return (permissions & 4U) != 0 ? (permissions & 4U) | 1U : 0;
}

}  // namespace cframefs::frame
