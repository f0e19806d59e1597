#include "frame/io/file_ops.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <sys/syscall.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "frame/io/file_locks.h"
#include "frame/io/system_version.h"

namespace cframefs::frame {

namespace {

using codec::io_error;

/// Repeats a system call while signals interrupt it.
template <class Call>
auto uninterrupted(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR)
    result = call();
  return result;
}

/// Returns true if the path has no directory part, so that plain openat() cannot leave the directory.
bool is_plain_name(const std::string& path) {
  return !path.empty() && path != ".." && path.find('/') == std::string::npos;
}

/// Returns true for a path with a NUL, which system calls would truncate silently.
bool has_nul(const std::string& path) {
  return path.find('\0') != std::string::npos;
}

/// Room for a file_handle with the longest handle.
struct HandleRoom {
  alignas(file_handle) std::array<std::uint8_t, sizeof(file_handle) + MAX_HANDLE_SZ> bytes{};

  file_handle* handle() { return static_cast<file_handle*>(static_cast<void*>(bytes.data())); }
};

struct DirCloser {
  void operator()(DIR* dir) const { ::closedir(dir); }
};

class SystemFiles final : public FileOps {
 public:
  explicit SystemFiles(bool openat2) : openat2_(openat2) {}

  Result<OpenFile> open_at(OpenFile dir, const std::string& path, int flags) override {
    if (has_nul(path)) return io_error(EINVAL, "open");
    if (is_plain_name(path)) {
      const int fd = uninterrupted([&] { return ::openat(dir.value, path.c_str(), flags | O_NOFOLLOW | O_CLOEXEC); });
      if (fd < 0) return io_error(errno, "open");
      return OpenFile{fd};
    }
    if (openat2_.load(std::memory_order_relaxed)) {
      const int fd = open_beneath(dir.value, path, flags);
      if (fd >= 0) return OpenFile{fd};
      // Old kernels lack the call (ENOSYS); some sandboxes return EPERM for calls that they do not know.
      if (errno != ENOSYS && errno != EPERM) return io_error(errno, "open");
      if (errno == ENOSYS) openat2_.store(false, std::memory_order_relaxed);
    }
    return open_by_component(dir, path, flags);
  }

  Result<OpenFile> open_named(const std::string& path, int flags) override {
    if (has_nul(path)) return io_error(EINVAL, "open");
    const int fd = uninterrupted([&] { return ::open(path.c_str(), flags | O_CLOEXEC); });
    if (fd < 0) return io_error(errno, "open");
    return OpenFile{fd};
  }

  Result<OpenFile> reopen(OpenFile file, int flags) override {
    const int again = uninterrupted([&] { return ::open(link_of(file).c_str(), (flags & ~O_NOFOLLOW) | O_CLOEXEC); });
    if (again >= 0) return OpenFile{again};
    const int error = errno;
    if (error == ENOENT && ::access("/proc/self/fd", F_OK) != 0) {
      return codec::unsupported("/proc is not mounted, but files are reopened through /proc/self/fd");
    }
    return io_error(error, "open");
  }

  Result<std::vector<std::uint8_t>> handle_of(OpenFile file) override {
    HandleRoom room;
    room.handle()->handle_bytes = MAX_HANDLE_SZ;
    int mount = 0;
    if (::name_to_handle_at(file.value, "", room.handle(), &mount, AT_EMPTY_PATH) < 0) return io_error(errno, "handle");
    const auto* begin = room.bytes.data();
    return std::vector<std::uint8_t>(begin, begin + sizeof(file_handle) + room.handle()->handle_bytes);
  }

  Result<OpenFile> open_handle(OpenFile mount, ByteView handle, int flags) override {
    HandleRoom room;
    if (handle.size() < sizeof(file_handle) || handle.size() > room.bytes.size()) return io_error(EINVAL, "open");
    std::copy(handle.begin(), handle.end(), room.bytes.begin());
    const int fd = uninterrupted([&] { return ::open_by_handle_at(mount.value, room.handle(), flags | O_CLOEXEC); });
    if (fd < 0) return io_error(errno, "open");
    return OpenFile{fd};
  }

  // close(2) is not repeated on EINTR: Linux has closed the descriptor even then.
  void close(OpenFile file) override { ::close(file.value); }

  std::optional<SystemDescriptor> system_descriptor(OpenFile file) const override {
    return SystemDescriptor{file.value};
  }

  Result<std::size_t> pread(OpenFile file, ByteSpan into, FileOffset at) override {
    std::size_t done = 0;
    while (done < into.size()) {
      const std::uint64_t place = at.value + done;
      if (place < done || place > std::numeric_limits<off_t>::max()) return io_error(EINVAL, "pread");
      const ssize_t got = uninterrupted(
          [&] { return ::pread(file.value, into.data() + done, into.size() - done, static_cast<off_t>(place)); });
      if (got < 0) return io_error(errno, "pread");
      if (got == 0) break;
      done += static_cast<std::size_t>(got);
    }
    return done;
  }

  Result<struct stat> status(OpenFile file) override {
    struct stat status {};
    if (uninterrupted([&] { return ::fstat(file.value, &status); }) < 0) return io_error(errno, "fstat");
    return status;
  }

  Result<struct stat> status_at(OpenFile dir, const std::string& path) override {
    if (has_nul(path)) return io_error(EINVAL, "stat");
    if (is_plain_name(path)) {
      struct stat status {};
      const auto call = [&] {
        return ::fstatat(dir.value, path.c_str(), &status, AT_SYMLINK_NOFOLLOW | AT_NO_AUTOMOUNT);
      };
      if (uninterrupted(call) < 0) return io_error(errno, "stat");
      return status;
    }
    const auto opened = open_at(dir, path, O_PATH | O_NOFOLLOW);
    if (!opened) return codec::Failure(opened.error());
    const Descriptor entry(*this, *opened);
    return status(entry.handle());
  }

  Result<struct statvfs> filesystem_status(OpenFile file) override {
    struct statvfs status {};
    if (uninterrupted([&] { return ::fstatvfs(file.value, &status); }) < 0) return io_error(errno, "fstatvfs");
    return status;
  }

  Result<std::vector<DirectoryEntry>> list(OpenFile dir) override {
    // A separate descriptor: reading a directory moves a position that all users of `dir` would share.
    const int fd = uninterrupted([&] { return ::openat(dir.value, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC); });
    if (fd < 0) return io_error(errno, "open of a directory");
    Descriptor own(*this, OpenFile{fd});
    const std::unique_ptr<DIR, DirCloser> stream(::fdopendir(fd));
    if (!stream) return io_error(errno, "fdopendir");
    own.release();  // closed with `stream`
    std::vector<DirectoryEntry> entries;
    while (true) {
      errno = 0;
      // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread has this stream
      const struct dirent* read = ::readdir(stream.get());
      if (read == nullptr) {
        if (errno != 0) return io_error(errno, "readdir");
        return entries;
      }
      const std::string_view name = read->d_name;
      if (name == "." || name == "..") continue;
      DirectoryEntry entry{std::string(name), read->d_ino, read->d_type};
      if (entry.type == DT_UNKNOWN) {
        const auto found = status_at(OpenFile{fd}, entry.name);
        if (!found) continue;  // removed since
        entry.type = IFTODT(found->st_mode);
      }
      entries.push_back(std::move(entry));
    }
  }

  Result<std::string> read_link(OpenFile link) override {
    std::string target(256, '\0');
    while (true) {
      const ssize_t length = ::readlinkat(link.value, "", target.data(), target.size());
      if (length < 0) return io_error(errno, "readlink");
      if (static_cast<std::size_t>(length) < target.size()) {
        target.resize(static_cast<std::size_t>(length));
        return target;
      }
      target.resize(target.size() * 2);
    }
  }

  Result<FileOffset> seek(OpenFile file, FileOffset from, int whence) override {
    if (from.value > std::numeric_limits<off_t>::max()) return io_error(ENXIO, "lseek");
    const off_t found = ::lseek(file.value, static_cast<off_t>(from.value), whence);
    if (found < 0) return io_error(errno, "lseek");
    return FileOffset{static_cast<std::uint64_t>(found)};
  }

  Result<std::vector<std::string>> list_attributes(OpenFile file) override {
    const std::string link = link_of(file);
    const auto names =
        sized_read("listxattr", [&](char* into, std::size_t size) { return ::listxattr(link.c_str(), into, size); });
    if (!names) return codec::Failure(names.error());
    std::vector<std::string> list;
    for (std::size_t at = 0; at < names->size();) {
      const std::size_t end = std::min(names->find('\0', at), names->size());
      list.push_back(names->substr(at, end - at));
      at = end + 1;
    }
    return list;
  }

  Result<void> check_rights(OpenFile file, int rights) override {
    // Call by number: without faccessat2 the C library's faccessat() checks other ids than the thread's.
    const long done =
        uninterrupted([&] { return ::syscall(SYS_faccessat2, file.value, "", rights, AT_EACCESS | AT_EMPTY_PATH); });
    if (done < 0) return io_error(errno, "access");
    return {};
  }

  Result<std::string> get_attribute(OpenFile file, const std::string& name) override {
    if (has_nul(name)) return io_error(EINVAL, "getxattr");
    const std::string link = link_of(file);
    return sized_read("getxattr",
                      [&](char* into, std::size_t size) { return ::getxattr(link.c_str(), name.c_str(), into, size); });
  }

  Result<OpenFile> create_at(OpenFile dir, const std::string& path, int flags, mode_t mode) override {
    // O_TMPFILE does not combine with O_CREAT.
    const int create = (flags & O_TMPFILE) == O_TMPFILE ? 0 : O_CREAT;
    return with_parent<OpenFile>(dir, path, "create", [&](int directory, const char* name) -> Result<OpenFile> {
      const int fd =
          uninterrupted([&] { return ::openat(directory, name, flags | create | O_NOFOLLOW | O_CLOEXEC, mode); });
      if (fd < 0) return io_error(errno, "create");
      return OpenFile{fd};
    });
  }

  Result<void> pwrite(OpenFile file, ByteView from, FileOffset at) override {
    std::size_t done = 0;
    while (done < from.size()) {
      const std::uint64_t place = at.value + done;
      if (place < done || place > std::numeric_limits<off_t>::max()) return io_error(EFBIG, "pwrite");
      const ssize_t put = uninterrupted(
          [&] { return ::pwrite(file.value, from.data() + done, from.size() - done, static_cast<off_t>(place)); });
      if (put < 0) return io_error(errno, "pwrite");
      if (put == 0) return io_error(EIO, "pwrite");
      done += static_cast<std::size_t>(put);
    }
    return {};
  }

  Result<void> truncate(OpenFile file, std::uint64_t size) override {
    if (size > static_cast<std::uint64_t>(std::numeric_limits<off_t>::max())) return io_error(EFBIG, "ftruncate");
    return answer("ftruncate", uninterrupted([&] { return ::ftruncate(file.value, static_cast<off_t>(size)); }));
  }

  Result<void> allocate(OpenFile file, int mode, FileOffset at, std::uint64_t length) override {
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
    if (at.value > kMax || length > kMax - at.value) return io_error(EFBIG, "fallocate");
    return answer("fallocate", uninterrupted([&] {
                    return ::fallocate(file.value, mode, static_cast<off_t>(at.value), static_cast<off_t>(length));
                  }));
  }

  void note_access(OpenFile file) override {
    const int flags = ::fcntl(file.value, F_GETFL);
    if (flags < 0) return;
    if ((flags & O_NOATIME) != 0) static_cast<void>(::fcntl(file.value, F_SETFL, flags & ~O_NOATIME));
    char byte = 0;
    static_cast<void>(::pread(file.value, &byte, 1, 0));
  }

  void prefetch(OpenFile file, FileOffset at, std::uint64_t length) override {
    // One call reads at most one request of the disk, which is rarely less than this.
    constexpr std::uint64_t kStep = std::uint64_t{256} << 10;
    constexpr auto kMax = static_cast<std::uint64_t>(std::numeric_limits<off_t>::max());
    if (at.value > kMax || length > kMax - at.value) return;
    for (std::uint64_t done = 0; done < length; done += kStep) {
      const auto step = static_cast<off_t>(std::min(kStep, length - done));
      if (::posix_fadvise(file.value, static_cast<off_t>(at.value + done), step, POSIX_FADV_WILLNEED) != 0) return;
    }
  }

  void start_writeback(OpenFile file, FileOffset at, std::uint64_t length) override {
    static_cast<void>(::sync_file_range(file.value, static_cast<off64_t>(at.value), static_cast<off64_t>(length),
                                        SYNC_FILE_RANGE_WRITE));
  }
  // Not repeated on EINTR: the kernel reports a write-back error only once.
  Result<void> sync(OpenFile file, bool data_only) override {
    return answer(data_only ? "fdatasync" : "fsync", data_only ? ::fdatasync(file.value) : ::fsync(file.value));
  }

  Result<void> flush(OpenFile file) override {
    const int copy = fcntl(file.value, F_DUPFD_CLOEXEC, 0);
    if (copy < 0) return io_error(errno, "dup");
    return answer("close", ::close(copy));
  }

  Result<void> rename_at(OpenFile from_dir, const std::string& from, OpenFile to_dir, const std::string& to,
                         unsigned flags) override {
    return with_parent<void>(from_dir, from, "rename", [&](int from_directory, const char* from_name) {
      return with_parent<void>(to_dir, to, "rename", [&](int to_directory, const char* to_name) {
        return answer("rename", ::renameat2(from_directory, from_name, to_directory, to_name, flags));
      });
    });
  }

  Result<void> remove_at(OpenFile dir, const std::string& path, bool directory) override {
    return with_parent<void>(dir, path, "unlink", [&](int parent, const char* name) {
      return answer(directory ? "rmdir" : "unlink", ::unlinkat(parent, name, directory ? AT_REMOVEDIR : 0));
    });
  }

  Result<void> make_directory_at(OpenFile dir, const std::string& path, mode_t mode) override {
    return with_parent<void>(dir, path, "mkdir", [&](int parent, const char* name) {
      return answer("mkdir", ::mkdirat(parent, name, mode));
    });
  }

  Result<void> make_node_at(OpenFile dir, const std::string& path, mode_t mode, dev_t device) override {
    return with_parent<void>(dir, path, "mknod", [&](int parent, const char* name) {
      return answer("mknod", ::mknodat(parent, name, mode, device));
    });
  }

  Result<void> link_at(OpenFile file, OpenFile to_dir, const std::string& to) override {
    return with_parent<void>(to_dir, to, "link", [&](int directory, const char* name) -> Result<void> {
      // The shorter way. Before Linux 6.10, and for a file that was opened with other credentials, it requires
      // CAP_DAC_READ_SEARCH, and fails with ENOENT without.
      if (::linkat(file.value, "", directory, name, AT_EMPTY_PATH) == 0) return {};
      if (errno != ENOENT) return io_error(errno, "link");
      return answer("link", ::linkat(AT_FDCWD, link_of(file).c_str(), directory, name, AT_SYMLINK_FOLLOW));
    });
  }

  Result<void> make_symlink_at(const std::string& target, OpenFile dir, const std::string& path) override {
    if (has_nul(target)) return io_error(EINVAL, "symlink");
    return with_parent<void>(dir, path, "symlink", [&](int parent, const char* name) {
      return answer("symlink", ::symlinkat(target.c_str(), parent, name));
    });
  }

  Result<void> change_mode(OpenFile file, mode_t mode) override {
    return answer("chmod", ::chmod(link_of(file).c_str(), mode));
  }

  Result<void> change_owner(OpenFile file, uid_t user, gid_t group) override {
    return answer("chown", ::fchownat(file.value, "", user, group, AT_EMPTY_PATH));
  }

  Result<void> set_times(OpenFile file, const std::array<struct timespec, 2>& times) override {
    return answer("utimens", ::utimensat(AT_FDCWD, link_of(file).c_str(), times.data(), 0));
  }

  Result<void> set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) override {
    if (has_nul(name)) return io_error(EINVAL, "setxattr");
    return answer("setxattr", ::setxattr(link_of(file).c_str(), name.c_str(), value.data(), value.size(), flags));
  }

  Result<void> remove_attribute(OpenFile file, const std::string& name) override {
    if (has_nul(name)) return io_error(EINVAL, "removexattr");
    return answer("removexattr", ::removexattr(link_of(file).c_str(), name.c_str()));
  }

  Result<bool> try_lock(OpenFile file, int operation) override { return try_file_lock(file.value, operation); }

  Result<bool> try_byte_lock(OpenFile file, FileOffset at, ByteLock action) override {
    return frame::try_byte_lock(file.value, at, action);
  }

 private:
  /// Returns a path to the file of `file`, for calls that do not accept O_PATH descriptors.
  static std::string link_of(OpenFile file) { return "/proc/self/fd/" + std::to_string(file.value); }

  static Result<void> answer(const char* doing, int result) {
    if (result < 0) return io_error(errno, doing);
    return {};
  }

  /// Calls `call(directory, name)` with the parent directory of `path`, opened beneath `dir`, and the last component.
  template <class T, class Call>
  Result<T> with_parent(OpenFile dir, const std::string& path, const char* doing, Call call) {
    if (has_nul(path)) return io_error(EINVAL, doing);
    const std::size_t slash = path.rfind('/');
    const char* name = path.c_str() + (slash == std::string::npos ? 0 : slash + 1);
    if (std::string_view(name) == "..") return io_error(EXDEV, doing);
    // Without an allocation: destructors remove files.
    if (slash == std::string::npos) return call(dir.value, name);
    auto directory = open_at(dir, path.substr(0, slash), O_PATH | O_DIRECTORY);
    if (!directory) return codec::Failure(directory.error());
    const Descriptor parent(*this, *directory);
    return call(parent.handle().value, name);
  }

  /// Calls openat2(2) by number: the C library of Debian 12 has no wrapper.
  static int open_beneath(int dir, const std::string& path, int flags) {
    struct open_how how {};
    how.flags = static_cast<std::uint64_t>(static_cast<unsigned>(flags | O_CLOEXEC));
    how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
    // EAGAIN: another program renamed a directory during the resolution.
    for (int tries = 0; tries < 100; ++tries) {
      const long fd = uninterrupted([&] { return ::syscall(SYS_openat2, dir, path.c_str(), &how, sizeof how); });
      if (fd >= 0 || errno != EAGAIN) return static_cast<int>(fd);
    }
    return -1;
  }

  /// Opens beneath `dir` without openat2: one directory at a time, never through a symbolic link, never upwards.
  Result<OpenFile> open_by_component(OpenFile dir, const std::string& path, int flags) {
    if (path.empty()) return io_error(ENOENT, "open");
    if (path.front() == '/') return io_error(EXDEV, "open");
    Descriptor directory;
    int at = dir.value;
    std::size_t begin = 0;
    while (true) {
      const std::size_t slash = path.find('/', begin);
      const bool last = path.find_first_not_of('/', std::min(slash, path.size())) == std::string::npos;
      std::string name = path.substr(begin, slash == std::string::npos ? slash : slash - begin);
      if (name == "..") return io_error(EXDEV, "open");
      if (name.empty()) name.assign(1, '.');
      const int step = last ? flags | (slash == std::string::npos ? 0 : O_DIRECTORY) : O_PATH | O_DIRECTORY;
      const int fd = uninterrupted([&] { return ::openat(at, name.c_str(), step | O_NOFOLLOW | O_CLOEXEC); });
      if (fd < 0) return io_error(errno, "open");
      if (last) return OpenFile{fd};
      directory = Descriptor(*this, OpenFile{fd});
      at = fd;
      begin = slash + 1;
    }
  }

  /// Calls a function that returns the needed size when given none; repeats if the value grows between both calls.
  template <class Call>
  static Result<std::string> sized_read(const char* doing, Call call) {
    while (true) {
      const ssize_t size = call(nullptr, 0);
      if (size < 0) return io_error(errno, doing);
      if (size == 0) return std::string();
      std::string value(static_cast<std::size_t>(size), '\0');
      const ssize_t got = call(value.data(), value.size());
      if (got >= 0) {
        value.resize(static_cast<std::size_t>(got));
        return value;
      }
      if (errno != ERANGE) return io_error(errno, doing);
    }
  }

  std::atomic<bool> openat2_;
};

}  // namespace

void RangeHints::expect(OpenFile /*file*/, FileOffset /*at*/, std::uint64_t /*length*/) {}

Result<void> RangeHints::fetch(OpenFile /*file*/, FileOffset /*at*/, std::uint64_t /*length*/) {
  return {};
}

Result<OpenFile> ReadFileOps::open_named(const std::string& path, int flags) {
  return system_files().open_named(path, flags);
}

Result<FileVersion> ReadFileOps::version(OpenFile file) {
  const auto found = status(file);
  if (!found) return codec::Failure(found.error());
  return version_of(*found);
}

FileOps& system_files() {
  static SystemFiles files(true);
  return files;
}

FileOps& portable_files() {
  static SystemFiles files(false);
  return files;
}

}  // namespace cframefs::frame
