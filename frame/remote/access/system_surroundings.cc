#include "frame/remote/access/system_surroundings.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <ctime>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <pwd.h>
#include <spawn.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "frame/base/utf8_sanitize.h"

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;
using codec::Result;
using Clock = std::chrono::steady_clock;

constexpr std::size_t kMostTextBytes = std::size_t{1} << 20U;
constexpr std::chrono::milliseconds kExitPause(5);

/// Owns a descriptor of the kernel.
class OwnedDescriptor {
 public:
  explicit OwnedDescriptor(int number) : number_(number) {}
  ~OwnedDescriptor() { close(); }
  OwnedDescriptor(const OwnedDescriptor&) = delete;
  OwnedDescriptor& operator=(const OwnedDescriptor&) = delete;

  int number() const { return number_; }
  void close() {
    if (number_ >= 0) ::close(std::exchange(number_, -1));
  }

 private:
  int number_;
};

bool is_null_device(const struct stat& status) {
  return S_ISCHR(status.st_mode) && status.st_rdev == makedev(1, 3);
}

/// Appends what the descriptor has; returns whether more may come. EFBIG if there is more than kMostTextBytes; EAGAIN
/// of a pipe that has nothing yet counts as "more may come".
Result<bool> read_some(int fd, std::string& text) {
  std::array<char, 16384> buffer{};
  const ssize_t got = ::read(fd, buffer.data(), buffer.size());
  if (got < 0) {
    if (errno == EINTR || errno == EAGAIN) return true;
    return io_error(errno, "read");
  }
  text.append(buffer.data(), static_cast<std::size_t>(got));
  if (text.size() > kMostTextBytes) return io_error(EFBIG, "read", "more than 1 MiB");
  return got != 0;
}

/// What a spawned program inherits: standard output into a pipe, no input, default signals, an own process group.
class SpawnSettings {
 public:
  explicit SpawnSettings(int output) {
    ::posix_spawn_file_actions_init(&actions_);
    ::posix_spawn_file_actions_addopen(&actions_, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    ::posix_spawn_file_actions_adddup2(&actions_, output, STDOUT_FILENO);
    ::posix_spawnattr_init(&attributes_);
    sigset_t none;
    ::sigemptyset(&none);
    ::posix_spawnattr_setsigmask(&attributes_, &none);
    sigset_t all;
    ::sigfillset(&all);
    ::posix_spawnattr_setsigdefault(&attributes_, &all);
    ::posix_spawnattr_setpgroup(&attributes_, 0);
    ::posix_spawnattr_setflags(&attributes_, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF | POSIX_SPAWN_SETPGROUP);
  }
  ~SpawnSettings() {
    ::posix_spawn_file_actions_destroy(&actions_);
    ::posix_spawnattr_destroy(&attributes_);
  }
  SpawnSettings(const SpawnSettings&) = delete;
  SpawnSettings& operator=(const SpawnSettings&) = delete;

  /// Returns 0 or an errno. The program gets `words` as its arguments.
  int spawn(pid_t& child, const std::vector<std::string>& words) const {
    std::vector<std::string> copies = words;  // posix_spawn wants them writable
    std::vector<char*> arguments;
    arguments.reserve(copies.size() + 1);
    for (std::string& copy : copies)
      arguments.push_back(copy.data());
    arguments.push_back(nullptr);
    return ::posix_spawnp(&child, arguments.front(), &actions_, &attributes_, arguments.data(), environ);
  }

 private:
  posix_spawn_file_actions_t actions_{};
  posix_spawnattr_t attributes_{};
};

/// A running program; its process group is killed unless it has ended.
class ChildProcess {
 public:
  explicit ChildProcess(pid_t pid) : pid_(pid) {}
  ~ChildProcess() {
    if (pid_ < 0) return;
    ::kill(-pid_, SIGKILL);
    while (::waitpid(pid_, nullptr, 0) < 0 && errno == EINTR) {
    }
  }
  ChildProcess(const ChildProcess&) = delete;
  ChildProcess& operator=(const ChildProcess&) = delete;

  /// Waits until the program ends and returns its status; ETIMEDOUT.
  Result<int> wait(Clock::time_point until) {
    int status = 0;
    while (true) {
      const pid_t ended = ::waitpid(pid_, &status, WNOHANG);
      if (ended != 0 && !(ended < 0 && errno == EINTR)) {
        pid_ = -1;
        // A process that ignores SIGCHLD learns no status.
        return ended < 0 ? 0 : status;
      }
      if (Clock::now() >= until) return io_error(ETIMEDOUT, "wait");
      std::this_thread::sleep_for(kExitPause);
    }
  }

 private:
  pid_t pid_;
};

Result<std::string> read_until_end(int fd, Clock::time_point until) {
  std::string text;
  while (true) {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(until - Clock::now()).count();
    if (left <= 0) return io_error(ETIMEDOUT, "read");
    struct pollfd ready {
      fd, POLLIN, 0
    };
    // Waiting in steps keeps the number in the range of int.
    if (::poll(&ready, 1, static_cast<int>(std::min<std::int64_t>(left, 60'000))) <= 0) continue;
    const auto may_have_more = read_some(fd, text);
    if (!may_have_more) return Failure(may_have_more.error());
    if (!*may_have_more) return text;
  }
}

/// Returns why a program's status is none of success; empty if it is.
std::string failure_of_status(int status) {
  if (WIFEXITED(status) && WEXITSTATUS(status) == 0) return "";
  if (WIFEXITED(status)) return "it ended with status " + std::to_string(WEXITSTATUS(status));
  return "it was ended by signal " + std::to_string(WTERMSIG(status));
}

}  // namespace

std::optional<std::string> SystemSurroundings::variable(const std::string& name) const {
  const char* value = std::getenv(name.c_str());
  if (value == nullptr) return std::nullopt;
  return value;
}

void SystemSurroundings::confine(OpenFile open, RunProgram run) {
  known_home_ = home();
  open_ = std::move(open);
  run_ = std::move(run);
}

std::string SystemSurroundings::home() const {
  if (!known_home_.empty()) return known_home_;
  if (const auto home = variable("HOME"); home && !home->empty()) return *home;
  std::vector<char> buffer(std::size_t{16} << 10U);
  struct passwd entry {};
  struct passwd* found = nullptr;
  if (::getpwuid_r(::geteuid(), &entry, buffer.data(), buffer.size(), &found) != 0 || found == nullptr) return "";
  return found->pw_dir;
}

/// Opens a file for reading. The descriptor belongs to the caller.
Result<int> SystemSurroundings::opened(const std::string& path) const {
  if (open_) {
    auto number = open_(path);
    return number ? number : io_error(number.error().sys, "open " + printable(path));
  }
  // O_NONBLOCK: opening a FIFO must not wait for a writer.
  const int number = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (number < 0) return io_error(errno, "open " + printable(path));
  return number;
}

Result<std::string> SystemSurroundings::file(const std::string& path) const {
  const auto number = opened(path);
  if (!number) return Failure(number.error());
  const OwnedDescriptor fd(*number);
  struct stat status {};
  if (::fstat(fd.number(), &status) != 0) return io_error(errno, "stat " + printable(path));
  if (is_null_device(status)) return std::string();
  if (!S_ISREG(status.st_mode)) return io_error(EINVAL, "read " + printable(path), "it is no regular file");
  std::string text;
  while (true) {
    const auto may_have_more = read_some(fd.number(), text);
    if (!may_have_more) {
      const int failed = may_have_more.error().sys;
      return io_error(failed, "read " + printable(path), failed == EFBIG ? "it has more than 1 MiB" : "");
    }
    if (!*may_have_more) return text;
  }
}

Result<bool> SystemSurroundings::is_readable_by_others(const std::string& path) const {
  struct stat status {};
  if (open_) {
    const auto number = opened(path);
    if (!number) return Failure(number.error());
    const OwnedDescriptor fd(*number);
    if (::fstat(fd.number(), &status) != 0) return io_error(errno, "stat " + printable(path));
  } else if (::stat(path.c_str(), &status) != 0) {
    return io_error(errno, "stat " + printable(path));
  }
  return (status.st_mode & (S_IRGRP | S_IROTH)) != 0;
}

Result<std::string> SystemSurroundings::output_of(const std::vector<std::string>& command) const {
  if (command.empty() || command.front().empty()) return codec::invalid("there is no command to run");
  if (run_) return run_();
  // The arguments are not named: they may hold secrets.
  const std::string doing = "run " + printable(command.front());
  std::array<int, 2> ends{};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return io_error(errno, doing);
  const OwnedDescriptor read_end(ends[0]);
  OwnedDescriptor write_end(ends[1]);
  // The write end, which the program gets, still blocks.
  ::fcntl(read_end.number(), F_SETFL, O_NONBLOCK);

  pid_t pid = -1;
  if (const int failed = SpawnSettings(write_end.number()).spawn(pid, command); failed != 0) {
    return io_error(failed, doing);
  }
  ChildProcess child(pid);
  write_end.close();
  const auto until = Clock::now() + patience_;
  auto text = read_until_end(read_end.number(), until);
  if (!text) return io_error(text.error().sys, doing, text.error().sys == EFBIG ? "it printed more than 1 MiB" : "");
  const auto status = child.wait(until);
  if (!status) return io_error(status.error().sys, doing);
  if (const std::string failure = failure_of_status(*status); !failure.empty()) return io_error(EIO, doing, failure);
  return text;
}

std::int64_t SystemSurroundings::now() const {
  return std::chrono::duration_cast<std::chrono::seconds>(std::chrono::system_clock::now().time_since_epoch()).count();
}

}  // namespace cframefs::frame
