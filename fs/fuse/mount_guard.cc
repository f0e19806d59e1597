#include "fs/fuse/mount_guard.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <system_error>

#include <fcntl.h>
#include <linux/close_range.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>

#include "fs/fuse/guard_process.h"
#include "fs/fuse/helper_process.h"
#include "fs/fuse/program_output.h"
#include "fs/util/log.h"

namespace cframefs::fs {
namespace {

// Signals whose default is a core dump, which waits for threads that may be blocked in the kernel forever.
constexpr std::array<int, 10> kCrashes = {SIGQUIT, SIGILL,  SIGTRAP, SIGABRT, SIGFPE,
                                          SIGBUS,  SIGSEGV, SIGSYS,  SIGXCPU, SIGXFSZ};
// Stack of the thread that holds the pipe: it only waits. Sanitizers need a part of the stack.
constexpr std::size_t kStack = std::size_t{256} << 10;

// si_code of a SIGSYS that a filter of system calls raises: SYS_SECCOMP, which older headers of the C library lack.
constexpr int kOfFilter = 1;

// A guard that is stopped must not stop the daemon.
constexpr timeval kPatience = {10, 0};

std::atomic<int> crash_socket{-1};  // for the signal handler

void send_message(int messages, const GuardMessage& message) {
  // Ignore errors: the daemon works without its guard, and must not block on a stopped one.
  static_cast<void>(send(messages, &message, sizeof message, MSG_NOSIGNAL | MSG_DONTWAIT));
}

void send_news(int messages, GuardNews news, const MountIdentity& mount = {}) {
  GuardMessage message;
  message.news = news;
  message.mount = mount;
  send_message(messages, message);
}

void on_crash(int signal, siginfo_t* about, void* /*context*/) {
  const int why = errno;
  GuardMessage message;
  message.news = GuardNews::released;
  if (signal == SIGSYS && about->si_code == kOfFilter) message.refused_call = about->si_syscall;
  send_message(crash_socket.load(), message);
  errno = why;
  // SA_RESETHAND has restored the default action. A fault repeats on return; a signal that was sent, or that a filter
  // of system calls has made (SIGSYS), has to be raised.
  if (about->si_code <= 0 || signal == SIGSYS) raise(signal);
}

void catch_crashes() {
  struct sigaction action {};
  action.sa_sigaction = on_crash;
  action.sa_flags = SA_SIGINFO | static_cast<int>(SA_RESETHAND);
  sigemptyset(&action.sa_mask);
  for (const int signal : kCrashes) {
    struct sigaction before {};
    // A sanitizer's handlers stay installed: they end the process normally.
    if (sigaction(signal, nullptr, &before) == 0 && before.sa_handler == SIG_DFL && (before.sa_flags & SA_SIGINFO) == 0)
      sigaction(signal, &action, nullptr);
  }
}

void close_one(int& fd) {
  if (fd >= 0) ::close(fd);
  fd = -1;
}

}  // namespace

MountGuard::~MountGuard() {
  dismiss();
}

codec::Result<void> MountGuard::start(const std::string& mountpoint, GuardDuties duties) {
  files_ = duties.files;
  // The guard leaves the working directory.
  for (std::string& file : duties.files) {
    std::error_code failed;
    if (const auto absolute = std::filesystem::absolute(file, failed); !failed) file = absolute.string();
  }
  std::array<int, 2> messages = {-1, -1};
  std::array<int, 2> life = {-1, -1};
  const bool piped =
      socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, messages.data()) == 0 && pipe2(life.data(), O_CLOEXEC) == 0;
  codec::Result<void> started = codec::io_error(errno, "start a guard");
  if (piped) {
    started = start_helper("cframefs-guard", "cframefs: guard of " + mountpoint, [&] {
      ::close(messages[0]);
      ::close(life[1]);
      guard_mount(mountpoint, duties, messages[1], life[0]);
    });
  }
  close_one(messages[1]);
  close_one(life[0]);
  messages_ = messages[0];
  life_ = life[1];
  for (const int limit : {SO_RCVTIMEO, SO_SNDTIMEO})
    setsockopt(messages_, SOL_SOCKET, limit, &kPatience, sizeof kPatience);
  if (!started) {
    close_ends();
    return codec::io_error(started.error().sys, "start a guard");
  }
  return {};
}

void MountGuard::mounted(const MountIdentity& mount) const {
  if (messages_ >= 0) send_news(messages_, GuardNews::mounted, mount);
}

void MountGuard::watch() {
  if (messages_ < 0) return;
  crash_socket = messages_;
  catch_crashes();
  // The thread blocks all signals: other threads handle them.
  sigset_t all;
  sigset_t before;
  sigfillset(&all);
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setstacksize(&attributes, kStack);
  pthread_sigmask(SIG_SETMASK, &all, &before);
  has_thread_ = pthread_create(&thread_, &attributes, hold_life, this) == 0;
  pthread_sigmask(SIG_SETMASK, &before, nullptr);
  pthread_attr_destroy(&attributes);
  if (!has_thread_) return;  // without it the pipe ends with the daemon's last thread
  codec::MutexLock lock(mutex_);
  while (!waits_)
    changed_.wait(mutex_);
  if (has_table_) close_one(life_);
}

void* MountGuard::hold_life(void* self) {
  static_cast<MountGuard*>(self)->wait_for_end();
  return nullptr;
}

void MountGuard::wait_for_end() {
  const auto life = static_cast<unsigned>(life_);
  // CLOSE_RANGE_UNSHARE gives this thread its own table of descriptors.
  const bool has_table = close_range(0, life - 1, CLOSE_RANGE_UNSHARE) == 0;
  if (has_table) close_range(life + 1, UINT_MAX, 0);
  codec::MutexLock lock(mutex_);
  has_table_ = has_table;
  waits_ = true;
  changed_.notify_all();
  while (!ended_)
    changed_.wait(mutex_);
}

void MountGuard::leave() {
  close_ends();
}

void MountGuard::release_readers() const {
  if (messages_ >= 0) send_news(messages_, GuardNews::released);
}

std::optional<MountGuard::Answered> MountGuard::ask(GuardMessage request) {
  codec::MutexLock lock(request_mutex_);
  if (messages_ < 0) return {};
  request.number = ++requests_;
  if (send(messages_, &request, sizeof request, MSG_NOSIGNAL) != sizeof request) return {};
  return receive(request.number);
}

std::optional<MountGuard::Answered> MountGuard::receive(std::uint64_t number) const {
  for (;;) {
    Answered answered;
    iovec data{&answered.answer, sizeof answered.answer};
    msghdr message{};
    message.msg_iov = &data;
    message.msg_iovlen = 1;
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t got = recvmsg(messages_, &message, MSG_CMSG_CLOEXEC);
    if (got < 0 && errno == EINTR) continue;
    if (got != sizeof answered.answer) return {};
    const cmsghdr* const header = CMSG_FIRSTHDR(&message);
    if (header != nullptr && header->cmsg_type == SCM_RIGHTS)
      std::memcpy(&answered.descriptor, CMSG_DATA(header), sizeof answered.descriptor);
    if (answered.answer.number == number) return answered;
    // The answer to a request that was given up.
    close_one(answered.descriptor);
  }
}

bool MountGuard::unmount(Unmounting how) {
  GuardMessage request;
  request.news = how == Unmounting::if_unused ? GuardNews::unmount_unused : GuardNews::unmount;
  const auto answered = ask(request);
  return answered && answered->answer.done;
}

codec::Result<int> MountGuard::open_log() {
  GuardMessage request;
  request.news = GuardNews::open_log;
  return ask_for_descriptor(request, "open the log file");
}

codec::Result<int> MountGuard::open_file(const std::string& path) {
  GuardMessage request;
  request.news = GuardNews::open_file;
  request.file = static_cast<std::uint32_t>(std::find(files_.begin(), files_.end(), path) - files_.begin());
  return ask_for_descriptor(request, "open");
}

codec::Result<std::string> MountGuard::run_program() {
  GuardMessage request;
  request.news = GuardNews::run_program;
  const auto pipe = ask_for_descriptor(request, "run the program for credentials");
  if (!pipe) return codec::Failure(pipe.error());
  auto output = read_output(*pipe);
  ::close(*pipe);
  return output;
}

codec::Result<int> MountGuard::ask_for_descriptor(const GuardMessage& request, const std::string& doing) {
  const auto answered = ask(request);
  if (!answered) {
    return codec::io_error(EIO, doing, "the guard, which does it for a daemon in its sandbox, does not answer");
  }
  if (answered->answer.done && answered->descriptor >= 0) return answered->descriptor;
  return codec::io_error(answered->answer.error != 0 ? answered->answer.error : EIO, doing);
}

bool MountGuard::only_readers_lock(const struct stat& file) {
  GuardMessage request;
  request.news = GuardNews::examine_locks;
  request.device = file.st_dev;
  request.inode = file.st_ino;
  const auto answered = ask(request);
  return answered && answered->answer.done;
}

void MountGuard::dismiss() {
  if (messages_ >= 0) send_news(messages_, GuardNews::dismissed);
  if (has_thread_) {
    {
      codec::MutexLock lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
    pthread_join(thread_, nullptr);
    has_thread_ = false;
  }
  crash_socket = -1;
  close_ends();
}

void MountGuard::close_ends() {
  // A thread of a source on a server may still ask.
  codec::MutexLock lock(request_mutex_);
  close_one(messages_);
  close_one(life_);
}

}  // namespace cframefs::fs
