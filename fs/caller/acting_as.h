// On whose behalf something is made, and doing so as that user: what is made belongs to its maker from the start, and
// set-group-id directories, default ACLs and quotas do with it what they do without a mount.
//
// The thread keeps the capabilities that let it pass rights, unless asked otherwise: the kernel has checked those of
// the caller already. A daemon without root's rights serves its own user alone, and changes nothing here.
//
// Thread safety: an ActingAs changes the thread that makes it and no other one. Errors: none.
#pragma once

#include <cstdint>
#include <vector>

#include <sys/stat.h>
#include <sys/types.h>

namespace cframefs::fs {

struct Caller {
  uid_t user = 0;
  gid_t group = 0;
  pid_t process = 0;  // 0: not known
  mode_t umask = 0;
};

class ActingAs {
 public:
  enum class Groups : std::uint8_t {
    primary,
    all,  // also those that the caller's process has besides: they decide whether a set-group-id bit stays
  };

  enum class Rights : std::uint8_t {
    passed,   // the kernel has checked those of the caller
    callers,  // what the caller may not do fails
  };

  explicit ActingAs(const Caller& caller, Groups groups = Groups::primary, Rights rights = Rights::passed);
  ~ActingAs();
  ActingAs(const ActingAs&) = delete;
  ActingAs& operator=(const ActingAs&) = delete;

  /// Whether the daemon can act as other users.
  static bool is_possible();

 private:
  bool changed_ = false;
  bool groups_changed_ = false;
  std::vector<gid_t> own_groups_;
};

/// Makes something of that mode as the caller does. A set-group-id bit stays only for a caller of the group, be it not
/// the primary one.
template <class Make>
auto as_caller(const Caller& caller, mode_t mode, Make make) {
  const ActingAs acting(caller, (mode & S_ISGID) != 0 ? ActingAs::Groups::all : ActingAs::Groups::primary);
  return make();
}

/// The groups that a process has besides its primary one, as /proc tells; none if it is gone.
std::vector<gid_t> groups_of(pid_t process);

}  // namespace cframefs::fs
