// What the filters of system calls take from a process, and from a thread that only decodes.
#include "fs/sandbox/syscall_filter.h"

#include <cerrno>
#include <csignal>
#include <functional>
#include <thread>
#include <vector>

#include <arpa/inet.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/netlink.h>
#include <netinet/in.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/support/sanitizers.h"

namespace cframefs::fs {
namespace {

constexpr int kPossible = 100;
constexpr int kNoFilter = 101;

/// Returns what a call ends with in a process with the filters: its errno, kPossible, or minus the signal.
int outcome(const std::function<codec::Result<void>()>& filter, const std::function<bool()>& call) {
  const pid_t child = ::fork();
  if (child == 0) {
    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
    if (!filter()) ::_exit(kNoFilter);
    errno = 0;
    ::_exit(call() ? kPossible : errno);
  }
  int status = 0;
  EXPECT_EQ(::waitpid(child, &status, 0), child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

codec::Result<void> daemon_filter() {
  return filter_daemon(Unexpected::fails);
}
codec::Result<void> strict_daemon_filter() {
  return filter_daemon(Unexpected::kills);
}
codec::Result<void> decoder_filter() {
  auto done = filter_daemon(Unexpected::fails);
  return done ? filter_decoder(Unexpected::fails, DecodesFrom::files) : done;
}
codec::Result<void> remote_decoder_filter() {
  auto done = filter_daemon(Unexpected::fails);
  return done ? filter_decoder(Unexpected::fails, DecodesFrom::servers) : done;
}
codec::Result<void> fetcher_filter() {
  return filter_fetcher(Unexpected::fails);
}
codec::Result<void> strict_fetcher_filter() {
  return filter_fetcher(Unexpected::kills);
}

bool opens(const char* path, int flags) {
  return ::open(path, flags | O_CLOEXEC, 0600) >= 0;
}
bool maps(int protection) {
  return ::mmap(nullptr, 4096, protection, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) != MAP_FAILED;
}
bool has_socket(int family, int type, int protocol) {
  return ::socket(family, type | SOCK_CLOEXEC, protocol) >= 0;
}
sockaddr_in local_address() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(9);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}
bool binds() {
  const sockaddr_in address = local_address();
  return ::bind(-1, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}
bool asks_for_addresses() {
  const int fd = ::socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
  sockaddr_nl address{};
  address.nl_family = AF_NETLINK;
  return ::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
}
bool sends(int flags) {
  const sockaddr_in address = local_address();
  const int fd = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
  return ::sendto(fd, "x", 1, flags, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 1;
}
bool starts_thread() {
  std::thread([] {}).join();
  return true;
}

TEST(SyscallFilter, ADaemonServesAndStartsNothing) {
  EXPECT_EQ(outcome(daemon_filter, [] { return opens("/dev/null", O_RDWR); }), kPossible);
  EXPECT_EQ(outcome(daemon_filter, [] { return maps(PROT_READ | PROT_WRITE); }), kPossible);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0; }), kPossible);
  EXPECT_EQ(outcome(daemon_filter, starts_thread), kPossible);
  EXPECT_EQ(outcome(strict_daemon_filter, [] { return ::unshare(CLONE_FS) == 0; }), kPossible) << "for an umask";
  EXPECT_EQ(outcome(daemon_filter, [] { return ::unshare(CLONE_NEWNS) == 0; }), -SIGSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::unshare(CLONE_FS | CLONE_NEWUSER) == 0; }), -SIGSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return maps(PROT_READ | PROT_EXEC); }), ENOSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::syscall(SYS_userfaultfd, 0) >= 0; }), -SIGSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }), -SIGSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::socket(AF_NETLINK, SOCK_RAW, 0) >= 0; }), -SIGSYS);
  EXPECT_EQ(outcome(daemon_filter, [] { return ::execl("/bin/true", "true", nullptr) == 0; }), -SIGSYS);
}

TEST(SyscallFilter, AFetcherConnectsAndStartsNothing) {
  for (const auto& filter : {fetcher_filter, strict_fetcher_filter}) {
    EXPECT_EQ(outcome(filter, [] { return opens("/dev/null", O_RDONLY); }), kPossible);
    EXPECT_EQ(outcome(filter, starts_thread), kPossible);
    for (const int family : {AF_INET, AF_INET6}) {
      EXPECT_EQ(outcome(filter, [&] { return has_socket(family, SOCK_STREAM, IPPROTO_TCP); }), kPossible);
      EXPECT_EQ(outcome(filter, [&] { return has_socket(family, SOCK_STREAM, 0); }), kPossible);
      EXPECT_EQ(outcome(filter, [&] { return has_socket(family, SOCK_DGRAM | SOCK_NONBLOCK, 0); }), kPossible);
      EXPECT_EQ(outcome(filter, [&] { return has_socket(family, SOCK_RAW, IPPROTO_ICMP); }), -SIGSYS);
    }
    EXPECT_EQ(outcome(filter, [] { return has_socket(AF_UNIX, SOCK_STREAM, 0); }), kPossible);
    EXPECT_EQ(outcome(filter, asks_for_addresses), kPossible);
    EXPECT_EQ(outcome(filter, [] { return sends(MSG_NOSIGNAL); }), kPossible);
    EXPECT_EQ(outcome(filter, binds), -SIGSYS);
    EXPECT_EQ(outcome(filter, [] { return ::listen(-1, 1) == 0; }), -SIGSYS);
    EXPECT_EQ(outcome(filter, [] { return ::execl("/bin/true", "true", nullptr) == 0; }), -SIGSYS);
    EXPECT_EQ(outcome(filter, [] { return has_socket(AF_PACKET, SOCK_DGRAM, 0); }), -SIGSYS);
  }
  EXPECT_EQ(outcome(fetcher_filter, [] { return ::fork() >= 0; }), ENOSYS);
  EXPECT_EQ(outcome(strict_fetcher_filter, [] { return ::fork() >= 0; }), -SIGSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return has_socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP); }), ENOSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return has_socket(AF_NETLINK, SOCK_RAW, NETLINK_AUDIT); }), ENOSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return sends(MSG_FASTOPEN); }), ENOSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return opens("/dev/null", O_WRONLY); }), ENOSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return ::unlinkat(AT_FDCWD, "/no-such-file", 0) == 0; }), ENOSYS);
  EXPECT_EQ(outcome(fetcher_filter, [] { return maps(PROT_READ | PROT_EXEC); }), ENOSYS);
  // Root's rights do not come back.
  EXPECT_EQ(outcome(fetcher_filter, [] { return ::syscall(SYS_setfsuid, 0) == 0; }), ENOSYS);
}

TEST(SyscallFilter, AnUnexpectedCallFailsOrEndsTheProcess) {
  const auto call = [] { return ::syscall(SYS_sched_setscheduler, 0, 0, nullptr) == 0; };
  EXPECT_EQ(outcome(daemon_filter, call), ENOSYS);
  EXPECT_EQ(outcome(strict_daemon_filter, call), -SIGSYS);
}

TEST(SyscallFilter, AThreadThatDecodesOnlyReads) {
  EXPECT_EQ(outcome(decoder_filter, [] { return opens("/dev/null", O_RDONLY); }), kPossible);
  EXPECT_EQ(outcome(decoder_filter, [] { return maps(PROT_READ | PROT_WRITE); }), kPossible);
  EXPECT_EQ(outcome(decoder_filter, [] { return opens("/dev/null", O_WRONLY); }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return opens("/dev/null", O_RDWR); }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return opens("/tmp", O_TMPFILE | O_WRONLY); }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return ::unlinkat(AT_FDCWD, "/no-such-file", 0) == 0; }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return ::fchmodat(AT_FDCWD, "/no-such-file", 0, 0) == 0; }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return ::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0; }), EPERM);
  EXPECT_EQ(outcome(decoder_filter, [] { return ::fork() >= 0; }), EPERM);
  // The filter of the process stays in force.
  EXPECT_EQ(outcome(decoder_filter, [] { return ::execl("/bin/true", "true", nullptr) == 0; }), -SIGSYS);
}

TEST(SyscallFilter, AThreadThatDecodesFromServersKeepsWhatItFetches) {
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return opens("/dev/null", O_RDWR); }), kPossible);
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return ::unlinkat(AT_FDCWD, "/no-such-file", 0) == 0; }), ENOENT);
  // The address sanitizer makes pipes in each thread that starts another, to find out which memory exists. A daemon
  // with sanitizers enters no sandbox.
  if (!test::kHasAddressSanitizer) {
    EXPECT_EQ(outcome(remote_decoder_filter, starts_thread), kPossible);
  }
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return ::socket(AF_UNIX, SOCK_DGRAM, 0) >= 0; }), EPERM);
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return ::fchmodat(AT_FDCWD, "/no-such-file", 0, 0) == 0; }), EPERM);
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0; }), -SIGSYS);
  EXPECT_EQ(outcome(remote_decoder_filter, [] { return ::execl("/bin/true", "true", nullptr) == 0; }), -SIGSYS);
}

}  // namespace
}  // namespace cframefs::fs
