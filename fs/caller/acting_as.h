// Runs file operations with the identity of the caller: a new file belongs to the caller from the start, and
// set-group-id directories, default ACLs, the umask and quotas work as without a mount.
//
// The thread keeps the capabilities that bypass permission checks, unless Rights::callers is given: the kernel has
// already checked the permissions of the caller. A daemon that is not root serves its own user only, and ActingAs does
// nothing.
//
// Thread safety: an ActingAs changes the thread that constructs it and no other one. Errors: none.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace cframefs::fs {

/// The identity of the process that sent a request.
struct Caller {
  uid_t user = 0;
  gid_t group = 0;
  pid_t process = 0;  // 0: unknown
  mode_t umask = 0;
};

class ActingAs {
 public:
  enum class Groups : std::uint8_t {
    primary,
    all,  // and the supplementary groups of the caller's process, which decide whether a set-group-id bit stays
  };

  enum class Rights : std::uint8_t {
    passed,   // permission checks are bypassed: the kernel has already checked the caller's
    callers,  // permission checks apply as for the caller
  };

  explicit ActingAs(const Caller& caller, Groups groups = Groups::primary, Rights rights = Rights::passed);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

  /// Returns whether the daemon can act as other users.
  static bool is_possible();

 private:
  bool changed_ = false;
  bool groups_changed_ = false;
  std::vector<gid_t> own_groups_;
};

/// Gives the calling thread the umask of a caller, so that the system applies it, or a default ACL in its place.
///
/// Thread safety, errors: as ActingAs.
class CallersUmask {
 public:
  explicit CallersUmask(const Caller& caller);
  ~CallersUmask();
  CallersUmask(const CallersUmask&) = delete;
  CallersUmask& operator=(const CallersUmask&) = delete;

  /// Returns whether the calling thread has an umask of its own, and gives it one unless the system refuses. The
  /// threads of a process have one umask otherwise.
  static bool is_possible();

 private:
  std::optional<mode_t> before_;
};

/// Calls `make`, which creates a file of `mode`, with the identity of the caller, and with its umask if that is
/// possible. A set-group-id bit stays only if the caller is in the group, which may be a supplementary one.
template <class Make>
auto as_caller(const Caller& caller, mode_t mode, Make make) {
  const ActingAs acting(caller, (mode & S_ISGID) != 0 ? ActingAs::Groups::all : ActingAs::Groups::primary);
  const CallersUmask umask(caller);
  return make();
}

/// Returns the supplementary groups of a process, from /proc; none if the process is gone.
std::vector<gid_t> groups_of(pid_t process);

}  // namespace cframefs::fs
