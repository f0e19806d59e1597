#include "fs/caller/caller_state.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <csignal>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include <fcntl.h>
#include <linux/capability.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

/// The first 4 KiB of /proc/THREAD/status. Reading this file never blocks. Reading /proc/THREAD/stat blocks while the
/// thread is in execve(2), which closes files of this mount and would wait for the daemon.
class ThreadStatus {
 public:
  explicit ThreadStatus(pid_t thread) {
    std::array<char, 64> path{};
    std::snprintf(path.data(), path.size(), "/proc/%d/status", static_cast<int>(thread));
    const int fd = open(path.data(), O_RDONLY | O_CLOEXEC);
    if (fd < 0) return;
    const ssize_t got = read(fd, content_.data(), content_.size());
    close(fd);
    if (got > 0) size_ = static_cast<std::size_t>(got);
  }
  std::string_view text() const { return {content_.data(), size_}; }

 private:
  std::array<char, 4096> content_{};
  std::size_t size_ = 0;
};

std::uint64_t bits_of(std::string_view text) {
  std::uint64_t value = 0;
  std::from_chars(text.data(), text.data() + text.size(), value, 16);
  return value;
}

/// Returns the value of a line of /proc/THREAD/status.
std::string_view value_of(std::string_view status, std::string_view field) {
  const std::size_t at = status.find(field);
  if (at == std::string_view::npos) return {};
  std::string_view value = status.substr(at + field.size());
  value.remove_prefix(std::min(value.size(), value.find_first_not_of(" \t")));
  return value.substr(0, value.find('\n'));
}

bool has_ended(char state) {
  return state == 'Z' || state == 'X';
}

constexpr std::uint64_t bit_of(int signal) {
  return std::uint64_t{1} << (signal - 1);
}

// The signals that end the process with a core dump unless it handles them.
constexpr std::uint64_t kDumping = bit_of(SIGQUIT) | bit_of(SIGABRT) | bit_of(SIGSYS) | bit_of(SIGTRAP) |
                                   bit_of(SIGXCPU) | bit_of(SIGXFSZ) | bit_of(SIGSEGV) | bit_of(SIGBUS) |
                                   bit_of(SIGFPE) | bit_of(SIGILL);

constexpr std::uint64_t bit_of_capability(int capability) {
  return std::uint64_t{1} << capability;
}

/// Returns true if the thread has one of the capabilities, or cannot be examined.
bool may_have(pid_t thread, std::uint64_t capabilities) {
  if (thread <= 0) return true;
  const ThreadStatus file(thread);
  return file.text().empty() || (bits_of(value_of(file.text(), "\nCapEff:")) & capabilities) != 0;
}

}  // namespace

CallerState caller_state(pid_t thread) {
  if (thread <= 0) return CallerState::waits;
  const ThreadStatus file(thread);
  const std::string_view status = file.text();
  if (status.empty()) return kill(thread, 0) != 0 && errno == ESRCH ? CallerState::gone : CallerState::waits;
  const std::string_view state = value_of(status, "\nState:");
  if (!state.empty() && has_ended(state.front())) return CallerState::gone;
  const auto signals = [&](std::string_view field) { return bits_of(value_of(status, field)); };
  const std::uint64_t pending = signals("\nSigPnd:") | signals("\nShdPnd:");
  const std::uint64_t handled = signals("\nSigBlk:") | signals("\nSigIgn:") | signals("\nSigCgt:");
  // A signal that ends the process without a core dump is pending in each of its threads as SIGKILL.
  if ((pending & (bit_of(SIGKILL) | (kDumping & ~handled))) != 0) return CallerState::ending;
  if (status.find("\nVmSize:") == std::string_view::npos) return CallerState::no_program;
  return (pending & bit_of(SIGINT)) != 0 ? CallerState::interrupted : CallerState::waits;
}

bool may_bypass_rights(pid_t thread) {
  return may_have(thread, bit_of_capability(CAP_DAC_OVERRIDE) | bit_of_capability(CAP_DAC_READ_SEARCH));
}

bool may_act_as_owner(pid_t thread) {
  return may_have(thread, bit_of_capability(CAP_FOWNER) | bit_of_capability(CAP_CHOWN));
}

}  // namespace cframefs::fs
