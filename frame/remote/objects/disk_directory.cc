#include "frame/remote/objects/disk_directory.h"

#include <atomic>
#include <cerrno>
#include <chrono>
#include <ctime>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <linux/openat2.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>

#include "frame/remote/objects/disk_block.h"

namespace cframefs::frame {
namespace {

constexpr std::string_view kTemporary = ".new-";
constexpr std::int64_t kSecondNs = 1'000'000'000;
constexpr std::int64_t kAbandonedAfter = 600 * kSecondNs;
constexpr int kDirectoryFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;
// O_NONBLOCK: opening a pipe must not wait for a writer.
constexpr int kFileFlags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;

std::int64_t in_nanoseconds(const struct timespec& time) {
  return std::int64_t{time.tv_sec} * kSecondNs + time.tv_nsec;
}

std::int64_t time_now() {
  struct timespec now {};
  ::clock_gettime(CLOCK_REALTIME, &now);
  return in_nanoseconds(now);
}

std::string temporary_name() {
  return fmt::format("{}{:016x}", kTemporary, random_number());
}

struct CloseDirectory {
  void operator()(DIR* open) const { ::closedir(open); }
};

/// Returns whether all bytes were written. errno says why not.
bool write_all(int fd, codec::ByteView bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(fd, bytes.data(), bytes.size());
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return false;
    bytes = bytes.subspan(static_cast<std::size_t>(count));
  }
  return true;
}

/// Makes a directory, and those above it that are missing, for this user alone. Returns false with errno as mkdir does.
bool make_directories(const std::string& path) {
  if (::mkdir(path.c_str(), S_IRWXU) == 0) return true;
  if (errno != ENOENT) return false;
  for (std::size_t end = path.find('/', 1); end != std::string::npos; end = path.find('/', end + 1))
    static_cast<void>(::mkdir(path.substr(0, end).c_str(), S_IRWXU));  // the last one tells what failed
  return ::mkdir(path.c_str(), S_IRWXU) == 0;
}

}  // namespace

codec::Result<SystemFd> open_cache_directory(const std::string& path) {
  const std::string doing = "open the cache " + path;
  std::string plain = path;
  while (plain.size() > 1 && plain.back() == '/')  // a symbolic link would be followed
    plain.pop_back();
  if (!make_directories(plain) && (errno == ENOENT || errno == ENOTDIR)) return codec::io_error(errno, doing);
  SystemFd fd(::open(plain.c_str(), kDirectoryFlags));
  if (!fd.is_open()) {
    if (errno != ENOTDIR && errno != ELOOP) return SystemFd();
    return codec::io_error(ENOTDIR, doing, "symbolic links are not followed");
  }
  struct stat status {};
  if (::fstat(fd.number(), &status) != 0) return SystemFd();
  if (status.st_uid != ::geteuid()) {
    return codec::io_error(EACCES, doing,
                           fmt::format("it belongs to user {}, not to user {}", status.st_uid, ::geteuid()));
  }
  if ((status.st_mode & (S_IWGRP | S_IWOTH)) != 0) {
    return codec::io_error(EACCES, doing,
                           fmt::format("other users may write to it: its mode is {:04o}, which must not exceed 0755",
                                       status.st_mode & 07777U));
  }
  return fd;
}

SystemFd open_subdirectory(int cache, unsigned directory, bool makes) {
  const std::string name = directory_name(directory);
  SystemFd fd(::openat(cache, name.c_str(), kDirectoryFlags));
  if (fd.is_open() || !makes || errno != ENOENT) return fd;
  ::mkdirat(cache, name.c_str(), S_IRWXU);
  return SystemFd(::openat(cache, name.c_str(), kDirectoryFlags));
}

SystemFd open_block_file(int cache, unsigned directory, const std::string& name) {
  static std::atomic<bool> has_openat2{true};
  if (!has_openat2) return open_block_file_by_steps(cache, directory, name);
  struct open_how how {};
  how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(kFileFlags));
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
  const std::string path = directory_name(directory) + '/' + name;
  SystemFd fd(static_cast<int>(::syscall(SYS_openat2, cache, path.c_str(), &how, sizeof how)));
  if (fd.is_open() || (errno != ENOSYS && errno != EPERM && errno != EAGAIN)) return fd;
  // EPERM: a filter of system calls may refuse what it does not know. EAGAIN: a directory was renamed meanwhile.
  if (errno == ENOSYS) has_openat2 = false;
  return open_block_file_by_steps(cache, directory, name);
}

SystemFd open_block_file_by_steps(int cache, unsigned directory, const std::string& name) {
  const SystemFd subdirectory = open_subdirectory(cache, directory, false);
  if (!subdirectory.is_open()) return {};
  SystemFd fd(::openat(subdirectory.number(), name.c_str(), kFileFlags));
  return fd;
}

DirectoryContent content_of(int cache, unsigned directory) {
  DirectoryContent content;
  const int fd = ::openat(cache, directory_name(directory).c_str(), kDirectoryFlags);
  if (fd < 0) return content;
  const std::unique_ptr<DIR, CloseDirectory> entries(::fdopendir(fd));
  if (!entries) {
    ::close(fd);
    return content;
  }
  const std::int64_t now = time_now();
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream
  while (const dirent* entry = ::readdir(entries.get())) {
    DiskBlockFile file{directory, entry->d_name, 0, 0};
    const bool is_temporary = file.name.starts_with(kTemporary);
    struct stat status {};
    if (!is_temporary && !is_block_name(file.name)) continue;
    if (::fstatat(fd, entry->d_name, &status, AT_SYMLINK_NOFOLLOW) != 0 || !S_ISREG(status.st_mode)) continue;
    file.bytes = static_cast<std::uint64_t>(status.st_size);
    file.used = in_nanoseconds(status.st_mtim);
    if (is_temporary && now - file.used > kAbandonedAfter && ::unlinkat(fd, entry->d_name, 0) == 0) continue;
    content.bytes += file.bytes;
    if (!is_temporary) content.blocks.push_back(std::move(file));
  }
  return content;
}

NewBlockFile::NewBlockFile(int subdirectory, std::uint64_t bytes)
    : subdirectory_(subdirectory),
      temporary_(temporary_name()),
      fd_(::openat(subdirectory, temporary_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC,
                   S_IRUSR | S_IWUSR)) {
  // If it fails, the file is counted once it is written.
  if (fd_.is_open()) static_cast<void>(::ftruncate(fd_.number(), static_cast<off_t>(bytes)) == 0);
}

NewBlockFile::~NewBlockFile() {
  if (fd_.is_open() && !is_named_) ::unlinkat(subdirectory_, temporary_.c_str(), 0);
}

int NewBlockFile::write_as(const std::string& name, codec::ByteView header, codec::ByteView body) {
  if (!write_all(fd_.number(), header) || !write_all(fd_.number(), body) ||
      ::renameat(subdirectory_, temporary_.c_str(), subdirectory_, name.c_str()) != 0) {
    return errno;
  }
  is_named_ = true;
  return 0;
}

std::string take_away(int subdirectory, const std::string& name) {
  std::string temporary = temporary_name();
  const bool is_taken = ::renameat(subdirectory, name.c_str(), subdirectory, temporary.c_str()) == 0;
  return is_taken ? temporary : std::string();
}

std::uint64_t random_number() {
  std::uint64_t number = 0;
  if (::getrandom(&number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) {
    number = static_cast<std::uint64_t>(std::chrono::steady_clock::now().time_since_epoch().count());
  }
  return number;
}

}  // namespace cframefs::frame
