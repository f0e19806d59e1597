#include "fs/caller/acting_as.h"

#include <array>
#include <fstream>
#include <limits>
#include <sstream>
#include <string>

#include <grp.h>
#include <linux/capability.h>
#include <sched.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

// The functions of the C library change all threads of the process; the system calls change the calling thread only.

void set_user(uid_t user) {
  static_cast<void>(::syscall(SYS_setfsuid, user));
}

void set_group(gid_t group) {
  static_cast<void>(::syscall(SYS_setfsgid, group));
}

bool set_groups(const std::vector<gid_t>& groups) {
  return ::syscall(SYS_setgroups, groups.size(), groups.data()) == 0;
}

using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

__user_cap_header_struct capability_header() {
  return {_LINUX_CAPABILITY_VERSION_3, 0};
}

Capabilities capabilities() {
  auto header = capability_header();
  Capabilities found{};
  static_cast<void>(::syscall(SYS_capget, &header, found.data()));
  return found;
}

constexpr std::uint32_t bit_of(unsigned capability) {
  return std::uint32_t{1} << capability;
}

/// The capabilities that bypass permission checks and create devices. CAP_FSETID, which keeps set-group-id bits, and
/// CAP_SYS_RESOURCE, which bypasses quotas, are not among them.
constexpr std::uint32_t kPassing =
    bit_of(CAP_DAC_OVERRIDE) | bit_of(CAP_DAC_READ_SEARCH) | bit_of(CAP_FOWNER) | bit_of(CAP_MKNOD);

void keep_capabilities(std::uint32_t kept) {
  Capabilities wanted = capabilities();
  wanted[0].effective = wanted[0].permitted & kept;
  wanted[1].effective = 0;
  auto header = capability_header();
  static_cast<void>(::syscall(SYS_capset, &header, wanted.data()));
}

void take_all_capabilities() {
  Capabilities wanted = capabilities();
  for (__user_cap_data_struct& half : wanted)
    half.effective = half.permitted;
  auto header = capability_header();
  static_cast<void>(::syscall(SYS_capset, &header, wanted.data()));
}

}  // namespace

std::vector<gid_t> groups_of(pid_t process) {
  std::vector<gid_t> groups;
  std::ifstream status("/proc/" + std::to_string(process) + "/status");
  for (std::string line; std::getline(status, line);) {
    if (!line.starts_with("Groups:")) continue;
    std::istringstream numbers(line.substr(7));
    for (gid_t group = 0; numbers >> group;)
      groups.push_back(group);
    break;
  }
  return groups;
}

bool ActingAs::is_possible() {
  return ::geteuid() == 0;
}

ActingAs::ActingAs(const Caller& caller, Groups groups, Rights rights) {
  if (!is_possible() || (caller.user == 0 && caller.group == 0)) return;
  if (groups == Groups::all && caller.process != 0) {
    std::vector<gid_t> theirs = groups_of(caller.process);
    const int count = ::getgroups(0, nullptr);
    own_groups_.resize(count > 0 ? static_cast<std::size_t>(count) : 0);
    if (::getgroups(count, own_groups_.data()) == count) groups_changed_ = set_groups(theirs);
  }
  changed_ = true;
  set_group(caller.group);
  set_user(caller.user);
  keep_capabilities(rights == Rights::passed ? kPassing : 0);
}

ActingAs::~ActingAs() {
  if (!changed_) return;
  set_user(0);
  set_group(0);
  take_all_capabilities();
  if (groups_changed_) static_cast<void>(set_groups(own_groups_));
}

bool CallersUmask::is_possible() {
  thread_local const bool has_own = ::unshare(CLONE_FS) == 0;
  return has_own;
}

CallersUmask::CallersUmask(const Caller& caller) {
  if (caller.umask != 0 && is_possible()) before_ = ::umask(caller.umask);
}

CallersUmask::~CallersUmask() {
  if (before_) ::umask(*before_);
}

}  // namespace cframefs::fs
