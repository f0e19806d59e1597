// A library to preload into the daemon: a fault that an attacker uses.
//
// A read of a file whose name begins with "hole-" does what the rest of the name says, inside the daemon, and then
// fails: with ENOTUNIQ if that was possible, else with the error of the call that was not. HOLE_DIRECTORY: a directory
// outside of the source; HOLE_PROCESS: a process beside the daemon.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <string>

#include <dlfcn.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <unistd.h>

namespace {

std::string given(const char* name) {
  const char* const value = std::getenv(name);
  return value == nullptr ? "" : value;
}

std::string name_of(int fd) {
  std::array<char, 4096> path{};
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  const std::string whole(path.data(), length < 0 ? 0 : static_cast<std::size_t>(length));
  return whole.substr(whole.rfind('/') + 1);
}

bool opens(const std::string& path, int flags) {
  const int fd = open(path.c_str(), flags | O_CLOEXEC, 0600);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

bool forks() {
  const pid_t child = fork();
  if (child == 0) _exit(0);
  return child > 0;
}

bool executes() {
  // A name that does not exist, so that the daemon goes on where it may execute.
  execl("/no-such-program", "no-such-program", nullptr);
  return errno == ENOENT;
}

bool connects() {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd >= 0) close(fd);
  return fd >= 0;
}

pid_t given_process() {
  return static_cast<pid_t>(std::strtol(given("HOLE_PROCESS").c_str(), nullptr, 10));
}

bool mounts() {
  // No such kind of filesystem.
  return mount("none", given("HOLE_DIRECTORY").c_str(), "no-such-kind", 0, nullptr) == 0 || errno == ENODEV;
}

bool traces() {
  return ptrace(PTRACE_PEEKDATA, given_process(), nullptr, nullptr) == 0 || errno == ESRCH;
}

bool loads_code() {
  void* const code = mmap(nullptr, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (code != MAP_FAILED) munmap(code, 4096);
  return code != MAP_FAILED;
}

bool goes_through(const std::string& hole) {
  const std::string directory = given("HOLE_DIRECTORY");
  if (hole == "read") return opens(directory + "/secret", O_RDONLY);
  if (hole == "overwrite") return opens(directory + "/secret", O_WRONLY);
  if (hole == "create") return opens(directory + "/made", O_WRONLY | O_CREAT);
  if (hole == "remove") return unlinkat(AT_FDCWD, (directory + "/removed").c_str(), 0) == 0 || errno == ENOENT;
  if (hole == "signal") return kill(given_process(), 0) == 0;
  if (hole == "code") return loads_code();
  if (hole == "fork") return forks();
  if (hole == "execute") return executes();
  if (hole == "connect") return connects();
  if (hole == "mount") return mounts();
  if (hole == "trace") return traces();
  errno = EINVAL;
  return false;
}

}  // namespace

// With _FILE_OFFSET_BITS=64 this is pread64, as in the daemon.
extern "C" ssize_t pread(int fd, void* buf, std::size_t nbytes, off_t offset) {
  static const auto real = reinterpret_cast<ssize_t (*)(int, void*, std::size_t, off_t)>(dlsym(RTLD_NEXT, "pread64"));
  const std::string name = name_of(fd);
  if (name.compare(0, 5, "hole-") != 0) return real(fd, buf, nbytes, offset);
  if (goes_through(name.substr(5))) errno = ENOTUNIQ;
  return -1;
}
