#include "fs/sandbox/syscall_filter.h"

#include <cerrno>
#include <cstdlib>
#include <memory>
#include <string>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/netlink.h>
#include <linux/seccomp.h>
#include <netinet/in.h>
#include <sched.h>
#include <seccomp.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "fs/util/backing_calls.h"

namespace cframefs::fs {
namespace {

using codec::Result;

// Names that this version of libseccomp, or this processor, does not have are left out.

// Memory, waiting, time, and what the C library does in any thread.
constexpr const char* kCommon[] = {
    "brk", "munmap", "mremap", "madvise", "mlock", "munlock", "membarrier", "futex", "futex_waitv", "futex_wait",
    "futex_wake", "futex_requeue", "sched_yield", "sched_getaffinity", "sched_getparam", "sched_getscheduler", "getcpu",
    "set_robust_list", "rseq", "set_tid_address", "exit", "exit_group", "restart_syscall", "rt_sigaction",
    "rt_sigprocmask", "rt_sigreturn", "rt_sigpending", "rt_sigtimedwait", "rt_sigsuspend", "sigaltstack", "tgkill",
    "gettid", "getpid", "getppid", "getuid", "geteuid", "getgid", "getegid", "clock_gettime", "clock_getres",
    "clock_nanosleep", "nanosleep", "gettimeofday", "time", "getrandom", "getrusage", "getrlimit", "sysinfo", "uname",
    "poll", "ppoll", "capget", "seccomp",
    // The names on 32-bit processors: with 64-bit time, with 32-bit identities, and others.
    "futex_time64", "clock_gettime64", "clock_nanosleep_time64", "ppoll_time64", "rt_sigtimedwait_time64", "getuid32",
    "geteuid32", "getgid32", "getegid32", "ugetrlimit", "sigreturn"};

// Reading files. The access mode of open(2) is examined.
constexpr const char* kReadsFiles[] = {"read",
                                       "readv",
                                       "pread64",
                                       "preadv",
                                       "preadv2",
                                       "lseek",
                                       "_llseek",
                                       "close",
                                       "fstat",
                                       "fstat64",
                                       "newfstatat",
                                       "fstatat64",
                                       "stat",
                                       "lstat",
                                       "statx",
                                       "statfs",
                                       "fstatfs",
                                       "statfs64",
                                       "fstatfs64",
                                       "getdents64",
                                       "readlink",
                                       "readlinkat",
                                       "access",
                                       "faccessat",
                                       "faccessat2",
                                       "fadvise64",
                                       "fadvise64_64",
                                       "arm_fadvise64_64",
                                       "readahead",
                                       "fcntl",
                                       "fcntl64",
                                       "flock",
                                       "getxattr",
                                       "lgetxattr",
                                       "fgetxattr",
                                       "listxattr",
                                       "llistxattr",
                                       "flistxattr",
                                       "name_to_handle_at"};

// Writing: to the log in any thread.
constexpr const char* kWritesLog[] = {"write", "writev"};
constexpr const char* kSends[] = {"sendto", "sendmsg", "send"};

// What is done with sockets and events once they exist.
constexpr const char* kUsesSockets[] = {
    "pipe2",       "dup",         "dup2",     "dup3",    "eventfd2",   "epoll_create1",  "epoll_ctl",  "epoll_wait",
    "epoll_pwait", "select",      "pselect6", "connect", "recvfrom",   "recvmsg",        "setsockopt", "getsockopt",
    "getsockname", "getpeername", "shutdown", "recv",    "_newselect", "pselect6_time64"};

// What the disk cache needs, and the answers of the guard, beside reading files.
constexpr const char* kKeepsFetched[] = {"openat",    "openat2",   "mkdirat",   "unlinkat", "renameat",
                                         "utimensat", "ftruncate", "fallocate", "pwrite64", "recvmsg"};

constexpr const char* kServes[] = {"open",
                                   "openat",
                                   "openat2",
                                   "pwrite64",
                                   "pwritev",
                                   "pwritev2",
                                   "ftruncate",
                                   "ftruncate64",
                                   "truncate",
                                   "truncate64",
                                   "fallocate",
                                   "fsync",
                                   "fdatasync",
                                   "sync_file_range",
                                   "sync_file_range2",
                                   "syncfs",
                                   "copy_file_range",
                                   "splice",
                                   "vmsplice",
                                   "tee",
                                   "sendfile",
                                   "sendfile64",
                                   "mkdirat",
                                   "mknodat",
                                   "symlinkat",
                                   "linkat",
                                   "unlinkat",
                                   "renameat",
                                   "renameat2",
                                   "fchmod",
                                   "fchmodat",
                                   "fchmodat2",
                                   "chmod",
                                   "fchown",
                                   "fchownat",
                                   "lchown",
                                   "chown",
                                   "fchown32",
                                   "lchown32",
                                   "chown32",
                                   "utimensat",
                                   "utimensat_time64",
                                   "setxattr",
                                   "lsetxattr",
                                   "fsetxattr",
                                   "removexattr",
                                   "lremovexattr",
                                   "fremovexattr",
                                   "open_by_handle_at",
                                   "inotify_init1",
                                   "inotify_add_watch",
                                   "inotify_rm_watch",
                                   "close_range",
                                   "memfd_create",
                                   "setfsuid",
                                   "setfsuid32",
                                   "setfsgid",
                                   "setfsgid32",
                                   "setgroups",
                                   "setgroups32",
                                   "getgroups",
                                   "getgroups32",
                                   "capset",
                                   "setreuid",
                                   "setreuid32",
                                   "umask",
                                   "getcwd",
                                   "chdir",
                                   "fchdir",
                                   "sched_setaffinity",
                                   "setpriority",
                                   "getpriority",
                                   "ioprio_get",
                                   "ioprio_set",
                                   "kill",
                                   "wait4",
                                   "waitid",
                                   "times"};

// On s390, clone() has its flags second, and the arguments of mmap() are in memory, where they cannot be examined.
#ifdef __s390__
constexpr unsigned kCloneFlags = 1;
constexpr bool kMapHasArguments = false;
#else
constexpr unsigned kCloneFlags = 0;
constexpr bool kMapHasArguments = true;
#endif

// Calls that a daemon never makes, and an attacker needs.
constexpr const char* kAttacks[] = {"execve",
                                    "execveat",
                                    "ptrace",
                                    "process_vm_readv",
                                    "process_vm_writev",
                                    "process_madvise",
                                    "pidfd_getfd",
                                    "mount",
                                    "umount2",
                                    "move_mount",
                                    "open_tree",
                                    "fsopen",
                                    "fsmount",
                                    "fsconfig",
                                    "fspick",
                                    "mount_setattr",
                                    "pivot_root",
                                    "chroot",
                                    "setns",
                                    "bpf",
                                    "perf_event_open",
                                    "userfaultfd",
                                    "keyctl",
                                    "add_key",
                                    "request_key",
                                    "kexec_load",
                                    "kexec_file_load",
                                    "init_module",
                                    "finit_module",
                                    "delete_module",
                                    "io_uring_setup",
                                    "reboot",
                                    "swapon",
                                    "swapoff",
                                    "iopl",
                                    "ioperm",
                                    "setuid",
                                    "setuid32",
                                    "setgid",
                                    "setgid32",
                                    "setresuid",
                                    "setresuid32",
                                    "setresgid",
                                    "setresgid32",
                                    "setregid",
                                    "setregid32",
                                    "quotactl",
                                    "fanotify_init",
                                    "modify_ldt",
                                    "personality",
                                    "vhangup",
                                    "acct",
                                    "settimeofday",
                                    "clock_settime",
                                    "clock_settime64",
                                    "clock_adjtime",
                                    "adjtimex",
                                    "sethostname",
                                    "setdomainname",
                                    "syslog",
                                    "kcmp",
                                    "landlock_create_ruleset",
                                    "listen",
                                    "accept",
                                    "accept4",
                                    "shmget",
                                    "shmat",
                                    "msgget",
                                    "semget",
                                    "mq_open"};

// The call is not made, and the thread gets SIGSYS, whose handler tells the guard before the process ends. The kernel
// itself would end the process with a core dump, which waits for threads that only the guard can unblock.
constexpr std::uint32_t kEnds = SCMP_ACT_TRAP;

/// Builds a filter. The first error stays and is returned by load().
class Filter {
 public:
  explicit Filter(std::uint32_t otherwise) : filter_(seccomp_init(otherwise), &seccomp_release), otherwise_(otherwise) {
    if (!filter_) return;
    // no_new_privs is set already, with an error that is looked at.
    note(seccomp_attr_set(filter_.get(), SCMP_FLTATR_CTL_NNP, 0));
    note(seccomp_attr_set(filter_.get(), SCMP_FLTATR_ACT_BADARCH, SCMP_ACT_KILL_PROCESS));
    // A search tree in place of a list: some calls are made for each request.
    note(seccomp_attr_set(filter_.get(), SCMP_FLTATR_CTL_OPTIMIZE, 2));
  }

  template <std::size_t N>
  void add(std::uint32_t action, const char* const (&names)[N]) {
    for (const char* const name : names)
      add(action, name);
  }
  /// Adds a rule for a call whose arguments satisfy `conditions`.
  template <class... Conditions>
  void add(std::uint32_t action, const char* name, Conditions... conditions) {
    add(action, seccomp_syscall_resolve_name(name), conditions...);
  }
  template <class... Conditions>
  void add(std::uint32_t action, int number, Conditions... conditions) {
    if (!filter_ || number < 0 || action == otherwise_) return;
    note(seccomp_rule_add(filter_.get(), action, number, sizeof...(conditions), conditions...));
  }
  template <class... Conditions>
  void permit(const char* name, Conditions... conditions) {
    add(SCMP_ACT_ALLOW, name, conditions...);
  }

  Result<void> load() {
    if (!filter_) return codec::io_error(ENOMEM, "seccomp_init");
    if (error_ != 0) return codec::io_error(error_, "seccomp_rule_add");
    if (const int failed = seccomp_load(filter_.get()); failed != 0) return codec::io_error(-failed, "seccomp_load");
    return {};
  }

 private:
  void note(int result) {
    if (result < 0 && error_ == 0) error_ = -result;
  }

  const std::unique_ptr<void, decltype(&seccomp_release)> filter_;
  const std::uint32_t otherwise_;
  int error_ = 0;
};

/// The conditions on an argument. The macros of libseccomp are C.
scmp_arg_cmp is(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_EQ, value, 0};
}
scmp_arg_cmp is_not(unsigned argument, std::uint64_t value) {
  return {argument, SCMP_CMP_NE, value, 0};
}
/// The bits of `mask` are those of `bits`.
scmp_arg_cmp has_bits(unsigned argument, std::uint64_t mask, std::uint64_t bits) {
  return {argument, SCMP_CMP_MASKED_EQ, mask, bits};
}

/// Threads, but no processes. The flags of clone3() are in memory, where they cannot be examined.
void permit_threads(Filter& filter) {
  filter.permit("clone", has_bits(kCloneFlags, CLONE_THREAD, CLONE_THREAD));
  filter.add(SCMP_ACT_ERRNO(ENOSYS), "clone3");
  filter.add(kEnds, "fork");
  filter.add(kEnds, "vfork");
}

/// Files that are opened for reading.
void permit_opening(Filter& filter) {
  constexpr std::uint64_t kChanges = O_ACCMODE | O_CREAT | O_TRUNC;
  filter.permit("open", has_bits(1, kChanges, 0));
  filter.permit("openat", has_bits(2, kChanges, 0));
}

/// Sockets of TCP and UDP, of this machine, and of routes, of which the resolver asks for the addresses of the machine.
/// Landlock's rules for ports hold for TCP alone: not for its relatives, such as MPTCP, nor for connections that are
/// made by sending (MSG_FASTOPEN).
void permit_network(Filter& filter) {
  constexpr std::uint64_t kType = 0xf;
  for (const int family : {AF_INET, AF_INET6}) {
    const scmp_arg_cmp of_family = is(0, static_cast<std::uint64_t>(family));
    for (const int protocol : {IPPROTO_IP, IPPROTO_TCP})
      filter.permit("socket", of_family, has_bits(1, kType, SOCK_STREAM), is(2, static_cast<std::uint64_t>(protocol)));
    for (const int protocol : {IPPROTO_IP, IPPROTO_UDP})
      filter.permit("socket", of_family, has_bits(1, kType, SOCK_DGRAM), is(2, static_cast<std::uint64_t>(protocol)));
    filter.add(kEnds, "socket", of_family, has_bits(1, kType, SOCK_RAW));
  }
  filter.permit("socket", is(0, AF_UNIX));
  filter.permit("socket", is(0, AF_NETLINK), is(2, NETLINK_ROUTE));
  filter.add(kEnds, "socket", is(0, AF_PACKET));
  filter.add(kEnds, "socket", is(0, AF_VSOCK));
  // The resolver binds the socket of routes. An address of this length is none of IPv4 or IPv6.
  filter.permit("bind", is(2, sizeof(sockaddr_nl)));
  filter.add(kEnds, "bind", is_not(2, sizeof(sockaddr_nl)));
  for (const char* const name : {"sendto", "send"})
    filter.permit(name, has_bits(3, MSG_FASTOPEN, 0));
  filter.permit("sendmsg", has_bits(2, MSG_FASTOPEN, 0));
  filter.permit("sendmmsg", has_bits(3, MSG_FASTOPEN, 0));
  // The resolver asks how long a datagram is.
  filter.permit("ioctl", is(1, FIONREAD));
}

/// Memory that can be executed is never made: no code is loaded once the mount serves.
void permit_memory(Filter& filter) {
  for (const char* const name : {"mmap2", "mprotect"})
    filter.permit(name, has_bits(2, PROT_EXEC, 0));
  if constexpr (kMapHasArguments) {
    filter.permit("mmap", has_bits(2, PROT_EXEC, 0));
  } else {
    filter.permit("mmap");
  }
  filter.permit("prctl", is(0, PR_SET_NAME));
  filter.permit("prctl", is(0, PR_GET_NAME));
  // Names of the C library's heaps: PR_SET_VMA.
  filter.permit("prctl", is(0, 0x53564d41));
}

/// Memory, waiting, and reading of open files.
void permit_reading(Filter& filter) {
  filter.add(SCMP_ACT_ALLOW, kCommon);
  filter.add(SCMP_ACT_ALLOW, kReadsFiles);
  permit_memory(filter);
}

std::uint32_t action_of(Unexpected unexpected, int error) {
  return unexpected == Unexpected::kills ? kEnds : SCMP_ACT_ERRNO(static_cast<std::uint32_t>(error));
}

}  // namespace

bool has_syscall_filter() {
  const std::uint32_t action = SECCOMP_RET_KILL_PROCESS;
  return ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
}

std::string name_of_call(int number) {
  const std::unique_ptr<char, decltype(&std::free)> name(seccomp_syscall_resolve_num_arch(SCMP_ARCH_NATIVE, number),
                                                         &std::free);
  return name ? name.get() : std::to_string(number);
}

Result<void> filter_daemon(Unexpected unexpected) {
  // ENOSYS: the C library takes an older call in place of one that is newer than these lists.
  Filter filter(action_of(unexpected, ENOSYS));
  filter.add(SCMP_ACT_ALLOW, kCommon);
  filter.add(SCMP_ACT_ALLOW, kReadsFiles);
  filter.add(SCMP_ACT_ALLOW, kWritesLog);
  filter.add(SCMP_ACT_ALLOW, kSends);
  filter.add(SCMP_ACT_ALLOW, kServes);
  filter.add(SCMP_ACT_ALLOW, kUsesSockets);
  filter.add(kEnds, kAttacks);
  filter.add(kEnds, "bind");
  permit_memory(filter);
  permit_threads(filter);
  // A thread takes an umask of its own (CallersUmask), and nothing that an attacker needs.
  filter.permit("unshare", is(0, CLONE_FS));
  filter.add(kEnds, "unshare", is_not(0, CLONE_FS));
  // The system log.
  filter.permit("socket", is(0, AF_UNIX));
  filter.add(kEnds, "socket", is_not(0, AF_UNIX));
  // The C library asks whether a file is a terminal.
  filter.permit("ioctl", is(1, TCGETS));
  filter.permit("ioctl", is(1, kOpenBacking));
  filter.permit("ioctl", is(1, kCloseBacking));
  // Whether a directory folds case.
  filter.permit("ioctl", is(1, FS_IOC_GETFLAGS));
  filter.permit("prlimit64", is(2, 0));
  return filter.load();
}

Result<void> filter_fetcher(Unexpected unexpected) {
  Filter filter(action_of(unexpected, ENOSYS));
  filter.add(SCMP_ACT_ALLOW, kCommon);
  filter.add(SCMP_ACT_ALLOW, kReadsFiles);
  filter.add(SCMP_ACT_ALLOW, kWritesLog);
  filter.add(SCMP_ACT_ALLOW, kUsesSockets);
  // The thread and those that resolve names for it wake each other by it.
  filter.permit("socketpair", is(0, AF_UNIX));
  filter.permit("recvmmsg");
  filter.add(kEnds, kAttacks);
  filter.add(kEnds, "unshare");
  permit_memory(filter);
  permit_threads(filter);
  permit_opening(filter);
  permit_network(filter);
  return filter.load();
}

Result<void> filter_decoder(Unexpected unexpected, DecodesFrom from) {
  Filter filter(action_of(unexpected, EPERM));
  permit_reading(filter);
  filter.add(SCMP_ACT_ALLOW, kWritesLog);
  filter.add(SCMP_ACT_ALLOW, kSends);
  if (from == DecodesFrom::servers) {
    filter.add(SCMP_ACT_ALLOW, kKeepsFetched);
    // The first request of a mount may be that of a decoder: it starts the threads that serve all requests.
    permit_threads(filter);
  } else {
    permit_opening(filter);
  }
  return filter.load();
}

Result<void> filter_page_filler() {
  Filter filter(action_of(Unexpected::fails, EPERM));
  permit_reading(filter);
  permit_opening(filter);
  filter.permit("open_by_handle_at");
  filter.permit("recvfrom");
  // statmount(2) of Linux 6.8, whose name older versions of libseccomp lack: whether the mount exists.
  constexpr int kStatMount = 457;
  filter.add(SCMP_ACT_ALLOW, kStatMount);
  return filter.load();
}

}  // namespace cframefs::fs
