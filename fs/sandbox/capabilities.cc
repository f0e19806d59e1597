#include "fs/sandbox/capabilities.h"

#include <array>
#include <cerrno>
#include <cstdint>

#include <linux/capability.h>
#include <sys/fsuid.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t bit_of(unsigned capability) {
  return std::uint64_t{1} << capability;
}

// What the kernel has permitted the caller to do, the daemon does in its place: change owners and rights, bypass
// permission checks and quotas, make devices, write security.capability and trusted.* attributes (SYS_ADMIN), and act
// with the caller's identity (SETUID, SETGID). SYS_ADMIN also gives the kernel files to read and write itself. The
// filter of system calls takes away what else it permits.
constexpr std::uint64_t kForCallers = bit_of(CAP_CHOWN) | bit_of(CAP_DAC_OVERRIDE) | bit_of(CAP_DAC_READ_SEARCH) |
                                      bit_of(CAP_FOWNER) | bit_of(CAP_FSETID) | bit_of(CAP_SETGID) |
                                      bit_of(CAP_SETUID) | bit_of(CAP_MKNOD) | bit_of(CAP_SETFCAP) |
                                      bit_of(CAP_SYS_RESOURCE) | bit_of(CAP_SYS_ADMIN);

using Sets = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

codec::Result<void> keep(std::uint64_t kept) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{};
  if (::syscall(SYS_capget, &header, sets.data()) != 0) return codec::io_error(errno, "capget");
  const std::array<std::uint32_t, _LINUX_CAPABILITY_U32S_3> masks = {static_cast<std::uint32_t>(kept),
                                                                     static_cast<std::uint32_t>(kept >> 32)};
  for (std::size_t half = 0; half < sets.size(); ++half) {
    sets[half].permitted &= masks[half];
    sets[half].effective &= masks[half];
    sets[half].inheritable = 0;
  }
  if (::syscall(SYS_capset, &header, sets.data()) != 0) return codec::io_error(errno, "capset");
  return {};
}

}  // namespace

bool may_administer() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Sets sets{};
  return ::syscall(SYS_capget, &header, sets.data()) == 0 && (sets[0].effective & bit_of(CAP_SYS_ADMIN)) != 0;
}

codec::Result<void> reduce_capabilities() {
  // Nothing is executed any more, so the bounding set need not be reduced; ambient ones would survive execve(2) only.
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return keep(kForCallers);
}

codec::Result<void> keep_capability_to_open() {
  prctl(PR_CAP_AMBIENT, PR_CAP_AMBIENT_CLEAR_ALL, 0, 0, 0);
  return keep(bit_of(CAP_DAC_READ_SEARCH));
}

void drop_capabilities() {
  static_cast<void>(keep(0));
}

void read_as_other_user() {
  constexpr unsigned kOtherUser = 65534;
  if (::geteuid() != 0) return;
  // The system call: the function of the C library changes all threads.
  ::syscall(SYS_setgroups, 0, nullptr);
  ::setfsgid(kOtherUser);
  ::setfsuid(kOtherUser);
}

}  // namespace cframefs::fs
