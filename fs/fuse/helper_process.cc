#include "fs/fuse/helper_process.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <vector>

#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

namespace cframefs::fs {
namespace {

/// The memory in which the system keeps the command line and the environment of this process.
struct TitleArea {
  char* begin = nullptr;
  char* end = nullptr;
};

char* address(std::uint64_t number) {
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the system tells addresses as numbers
  return reinterpret_cast<char*>(static_cast<std::uintptr_t>(number));
}

TitleArea title_area() {
  std::ifstream about("/proc/self/stat");
  std::string text;
  std::getline(about, text);
  // The second field is the name of the program, which may contain any character.
  const std::size_t name_end = text.rfind(')');
  if (name_end == std::string::npos) return {};
  std::istringstream fields(text.substr(name_end + 1));
  std::vector<std::uint64_t> values;
  fields.ignore(3);  // the state, a letter
  for (std::int64_t value = 0; values.size() < 48; values.push_back(static_cast<std::uint64_t>(value))) {
    std::string word;
    if (!(fields >> word)) return {};
    value = static_cast<std::int64_t>(std::strtoull(word.c_str(), nullptr, 10));
  }
  // Fields 48 to 51 of proc(5); values[0] is field 4.
  const std::uint64_t arguments = values[44];
  const std::uint64_t arguments_end = values[45];
  const std::uint64_t environment = values[46];
  const std::uint64_t environment_end = values[47];
  if (arguments == 0 || arguments_end <= arguments) return {};
  const bool adjoin = environment == arguments_end && environment_end > environment;
  return {address(arguments), address(adjoin ? environment_end : arguments_end)};
}

/// Sets the command line that `ps` shows. The kernel reads on into the environment if the last byte of the arguments is
/// not 0.
void set_title(const char* name, const std::string& title) {
  prctl(PR_SET_NAME, name);
  const TitleArea area = title_area();
  if (area.begin == nullptr) return;
  // Copy the environment before it is overwritten: execlp() needs PATH.
  for (char** variable = environ; variable != nullptr && *variable != nullptr; ++variable)
    *variable = strdup(*variable);
  const auto room = static_cast<std::size_t>(area.end - area.begin);
  std::memset(area.begin, 0, room);
  std::memcpy(area.begin, title.data(), std::min(title.size(), room - 1));
}

void ignore_signals() {
  for (const int signal : {SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGUSR1, SIGUSR2, SIGTSTP, SIGTTIN, SIGTTOU})
    std::signal(signal, SIG_IGN);
  std::signal(SIGCHLD, SIG_DFL);
}

}  // namespace

codec::Result<void> start_helper(const char* name, const std::string& title, const std::function<void()>& body) {
  const pid_t child = fork();
  if (child < 0) return codec::io_error(errno, "fork");
  if (child == 0) {
    // A grandchild whose parent has ended is reaped by init, so the daemon has no zombie.
    setsid();
    // The daemon waits for this process. So the helper has its name and ignores signals when start_helper() returns.
    ignore_signals();
    set_title(name, title);
    const pid_t helper = fork();
    if (helper != 0) _exit(helper < 0 ? 1 : 0);
    body();
    _exit(0);
  }
  int status = 0;
  pid_t ended = 0;
  do {
    ended = waitpid(child, &status, 0);
  } while (ended < 0 && errno == EINTR);
  if (ended == child && status != 0) return codec::io_error(EAGAIN, "fork");
  return {};
}

void leave_daemon(std::initializer_list<int> kept) {
  static_cast<void>(chdir("/"));
  const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
  for (int fd = STDIN_FILENO; null >= 0 && fd <= STDERR_FILENO; ++fd)
    dup2(null, fd);
  std::vector<int> order(kept);
  std::sort(order.begin(), order.end());
  unsigned next = STDERR_FILENO + 1;
  for (const int fd : order) {
    const auto number = static_cast<unsigned>(fd);
    if (number > next) close_range(next, number - 1, 0);
    next = number + 1;
  }
  close_range(next, UINT_MAX, 0);
}

}  // namespace cframefs::fs
