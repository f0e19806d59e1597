// A library to preload into the daemon: calls of the system that take long, or wait at a gate.
//
// SLOW_CALLS in the environment names calls and milliseconds: "second_fork=500 fsync=3000". second_fork: what the child
// of a child does first; fsync: fdatasync as well; pread; pwrite; flock; list: of a directory; entries: each
// that a listing reads; statfs.
//
// GATED_CALLS names calls that wait for as long as the file exists that GATE names: "fsync pwrite". GATED_FILE: only
// those on open files whose path holds this text. The first call that has to wait makes the file GATE + ".reached".
//
// ABORTED_READS: the end of a mount, which read(2) tells by ENODEV, is told as to a thread that was about to take a
// request.
//
// HELD_READ names a file: while it is there, the first read of a file whose name begins with "held" that begins between
// its first and its third MiB waits, and says so by making the file HELD_READ + ".reached". All later ones go on.
//
// NO_MEMORY names a file: while it is there, no request can be received for want of memory, which makes the file
// NO_MEMORY + ".reached".
//
// SHORT_READS: a read at an offset gets at most half of what it asks for, and each third is interrupted first.
//
// NO_INOTIFY: no directory can be watched, as where the limit on watches is reached.
//
// NO_BACKING names a file: while it is there, the device takes no file to read and write itself.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <string_view>

#include <dirent.h>
#include <dlfcn.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/statvfs.h>
#include <unistd.h>

namespace {

int forks = 0;

std::string_view given(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? "" : value;
}

void take_long(const std::string& call) {
  const std::string_view calls = given("SLOW_CALLS");
  const auto at = calls.find(call + "=");
  if (at == std::string_view::npos) return;
  usleep(static_cast<useconds_t>(std::strtoul(calls.data() + at + call.size() + 1, nullptr, 10)) * 1000);
}

std::string path_of(int fd) {
  std::string path(4096, '\0');
  const ssize_t length = readlink(("/proc/self/fd/" + std::to_string(fd)).c_str(), path.data(), path.size());
  path.resize(length < 0 ? 0 : static_cast<std::size_t>(length));
  return path;
}

bool is_gated(const std::string& call, int fd) {
  if ((" " + std::string(given("GATED_CALLS")) + " ").find(" " + call + " ") == std::string::npos) return false;
  return path_of(fd).find(given("GATED_FILE")) != std::string::npos;
}

void wait_at_gate(const std::string& call, int fd) {
  const std::string gate(given("GATE"));
  if (gate.empty() || access(gate.c_str(), F_OK) != 0 || !is_gated(call, fd)) return;
  const int reached = open((gate + ".reached").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
  if (reached >= 0) close(reached);
  while (access(gate.c_str(), F_OK) == 0)
    usleep(1000);
}

void begin(const std::string& call, int fd) {
  take_long(call);
  wait_at_gate(call, fd);
}

void hold_read(int fd, off_t at) {
  constexpr off_t kMiB = 1 << 20;
  const std::string gate(given("HELD_READ"));
  if (gate.empty() || at < kMiB || at >= 3 * kMiB || access(gate.c_str(), F_OK) != 0) return;
  const std::string path = path_of(fd);
  if (path.compare(path.rfind('/') + 1, 4, "held") != 0) return;
  const int reached = open((gate + ".reached").c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (reached < 0) return;
  close(reached);
  while (access(gate.c_str(), F_OK) == 0)
    usleep(1000);
}

/// Returns whether the call is interrupted; else how many bytes it may read.
bool is_interrupted(std::size_t& nbytes) {
  static const bool is_short = !given("SHORT_READS").empty();
  static std::atomic<unsigned> calls{0};
  if (!is_short) return false;
  nbytes = std::max<std::size_t>(nbytes / 2, std::min<std::size_t>(nbytes, 1));
  return ++calls % 3 == 0;
}

template <class Call>
Call next(const char* name) {
  return reinterpret_cast<Call>(dlsym(RTLD_NEXT, name));
}

}  // namespace

extern "C" pid_t fork() noexcept {
  static const auto real = next<pid_t (*)()>("fork");
  const pid_t child = real();
  if (child == 0 && ++forks == 2) take_long("second_fork");
  return child;
}

extern "C" ssize_t read(int fd, void* buf, std::size_t nbytes) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t)>("read");
  const std::string gate(given("NO_MEMORY"));
  if (!gate.empty() && access(gate.c_str(), F_OK) == 0 && path_of(fd) == "/dev/fuse") {
    const int reached = open((gate + ".reached").c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (reached >= 0) close(reached);
    errno = ENOMEM;
    return -1;
  }
  const ssize_t got = real(fd, buf, nbytes);
  if (got < 0 && errno == ENODEV && !given("ABORTED_READS").empty()) errno = ECONNABORTED;
  return got;
}

extern "C" int ioctl(int fd, unsigned long request, ...) noexcept {
  static const auto real = next<int (*)(int, unsigned long, void*)>("ioctl");
  constexpr unsigned long kOpenBacking = 0x4010e501;  // FUSE_DEV_IOC_BACKING_OPEN
  const std::string gate(given("NO_BACKING"));
  if (request == kOpenBacking && !gate.empty() && access(gate.c_str(), F_OK) == 0) {
    errno = EPERM;
    return -1;
  }
  va_list rest;
  va_start(rest, request);
  void* const argument = va_arg(rest, void*);
  va_end(rest);
  return real(fd, request, argument);
}

extern "C" int inotify_add_watch(int fd, const char* path, std::uint32_t mask) noexcept {
  static const auto real = next<int (*)(int, const char*, std::uint32_t)>("inotify_add_watch");
  if (given("NO_INOTIFY").empty()) return real(fd, path, mask);
  errno = ENOSPC;
  return -1;
}

extern "C" int fsync(int fd) {
  static const auto real = next<int (*)(int)>("fsync");
  begin("fsync", fd);
  return real(fd);
}

extern "C" int fdatasync(int fildes) {
  static const auto real = next<int (*)(int)>("fdatasync");
  begin("fsync", fildes);
  return real(fildes);
}

// With _FILE_OFFSET_BITS=64 these are the calls pread64, fstatvfs64 and pwrite64, as in the daemon.
extern "C" ssize_t pread(int fd, void* buf, std::size_t nbytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, void*, std::size_t, off_t)>("pread64");
  begin("pread", fd);
  hold_read(fd, offset);
  if (is_interrupted(nbytes)) {
    errno = EINTR;
    return -1;
  }
  return real(fd, buf, nbytes, offset);
}

extern "C" int flock(int fd, int operation) {
  static const auto real = next<int (*)(int, int)>("flock");
  begin("flock", fd);
  return real(fd, operation);
}

extern "C" DIR* fdopendir(int fd) {
  static const auto real = next<DIR* (*)(int)>("fdopendir");
  begin("list", fd);
  return real(fd);
}

// This is readdir64, as fdopendir(3) gave it to the daemon.
extern "C" dirent* readdir(DIR* dirp) {
  static const auto real = next<dirent* (*)(DIR*)>("readdir64");
  // The end of a directory is told by what errno was before.
  const int before = errno;
  begin("entries", dirfd(dirp));
  errno = before;
  return real(dirp);
}

extern "C" int fstatvfs(int fildes, struct statvfs* buf) {
  static const auto real = next<int (*)(int, struct statvfs*)>("fstatvfs64");
  begin("statfs", fildes);
  return real(fildes, buf);
}

extern "C" ssize_t pwrite(int fd, const void* buf, std::size_t nbytes, off_t offset) {
  static const auto real = next<ssize_t (*)(int, const void*, std::size_t, off_t)>("pwrite64");
  begin("pwrite", fd);
  return real(fd, buf, nbytes, offset);
}
