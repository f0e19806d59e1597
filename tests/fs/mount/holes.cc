// A library to preload into the daemon: a fault that an attacker uses.
//
// A read of a file whose name begins with "hole-" does what the rest of the name says, inside the daemon, and then
// fails: with ENOTUNIQ if that was possible, else with the error of the call that was not. HOLE_DIRECTORY: a directory
// outside of the source; HOLE_PROCESS: a process beside the daemon; HOLE_PORT: where a server listens.
//
// In the daemon of an address, a file HOLE_DIRECTORY/PLACE-HOLE opens the hole: once, in the thread that asks for an
// object (PLACE serve) or in the one that talks to servers (fetch). What comes of it goes to standard error:
// "PLACE-HOLE: ERRNO", with 0 if it was possible.
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <mutex>
#include <set>
#include <string>

#include <arpa/inet.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <netinet/in.h>
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

std::uint16_t given_port() {
  return static_cast<std::uint16_t>(std::strtoul(given("HOLE_PORT").c_str(), nullptr, 10));
}

sockaddr_in local_address(std::uint16_t port) {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  return address;
}

bool with_socket(int protocol, const std::function<bool(int)>& use) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, protocol);
  if (fd < 0) return false;
  const bool used = use(fd);
  const int why = errno;
  close(fd);
  errno = why;
  return used;
}

bool connects_to(std::uint16_t port) {
  const sockaddr_in address = local_address(port);
  return with_socket(
      0, [&address](int fd) { return connect(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; });
}

/// Connects by sending.
bool opens_fast(std::uint16_t port) {
  const sockaddr_in address = local_address(port);
  return with_socket(0, [&address](int fd) {
    return sendto(fd, "x", 1, MSG_FASTOPEN, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 1;
  });
}

bool binds() {
  const sockaddr_in address = local_address(0);
  return with_socket(
      0, [&address](int fd) { return bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0; });
}

bool listens() {
  return with_socket(0, [](int fd) { return listen(fd, 1) == 0; });
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
  if (hole == "port") return connects_to(given_port());
  if (hole == "fast") return opens_fast(given_port());
  if (hole == "relative") return with_socket(IPPROTO_MPTCP, [](int) { return true; });
  if (hole == "bind") return binds();
  if (hole == "listen") return listens();
  if (hole == "names") return opens("/etc/hosts", O_RDONLY);
  if (hole == "secret") return opens("/etc/shadow", O_RDONLY);
  if (hole == "mount") return mounts();
  if (hole == "trace") return traces();
  errno = EINVAL;
  return false;
}

constexpr std::array<const char*, 18> kHoles = {"read",     "overwrite", "create",  "remove", "signal", "code",
                                                "fork",     "execute",   "connect", "mount",  "trace",  "port",
                                                "relative", "fast",      "listen",  "secret", "bind",   "names"};

/// Goes through the holes that are open at a place.
void go_through_open(const std::string& place) {
  static const std::string directory = given("HOLE_DIRECTORY");
  for (const char* const hole : kHoles) {
    const std::string name = place + "-" + hole;
    const std::string path = directory + "/" + name;
    if (access(path.c_str(), F_OK) != 0) continue;
    static std::mutex mutex;
    static std::set<std::string> known;
    if (const std::lock_guard<std::mutex> lock(mutex); !known.insert(path).second) continue;
    const int found = goes_through(hole) ? 0 : errno;
    dprintf(STDERR_FILENO, "%s: %d\n", name.c_str(), found);
  }
}

}  // namespace

extern "C" int curl_multi_add_handle(void* multi, void* easy) {
  static const auto real = reinterpret_cast<int (*)(void*, void*)>(dlsym(RTLD_NEXT, "curl_multi_add_handle"));
  go_through_open("fetch");
  return real(multi, easy);
}

extern "C" int curl_multi_wakeup(void* multi) {
  static const auto real = reinterpret_cast<int (*)(void*)>(dlsym(RTLD_NEXT, "curl_multi_wakeup"));
  go_through_open("serve");
  return real(multi);
}

// With _FILE_OFFSET_BITS=64 this is pread64, as in the daemon.
extern "C" ssize_t pread(int fd, void* buf, std::size_t nbytes, off_t offset) {
  static const auto real = reinterpret_cast<ssize_t (*)(int, void*, std::size_t, off_t)>(dlsym(RTLD_NEXT, "pread64"));
  const std::string name = name_of(fd);
  if (name.compare(0, 5, "hole-") != 0) return real(fd, buf, nbytes, offset);
  if (goes_through(name.substr(5))) errno = ENOTUNIQ;
  return -1;
}
