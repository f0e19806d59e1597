// The interface of all file operations. Tests replace it by implementations that fail, tear or stop at any step.
//
// The calls are those of POSIX with `*at` resolution: paths are resolved beneath `dir` and symbolic links in them are
// not followed, so no call reaches a file outside `dir`. Attributes are those of an open descriptor, which may be an
// O_PATH descriptor. Implementations retry on EINTR and continue short transfers, so callers need not.
//
// Thread safety: all members may run concurrently. Ownership: the caller closes descriptors; class Descriptor does so.
// Errors: io, with the errno of the system call.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/base/coordinates.h"

namespace cframefs::frame {

using codec::ByteSpan;
using codec::ByteView;
using codec::Error;
using codec::ErrorKind;
using codec::Result;

struct DirectoryEntry {
  std::string name;
  std::uint64_t inode = 0;
  unsigned char type = 0;  // DT_*, never DT_UNKNOWN
};

class FileOps {
 public:
  virtual ~FileOps() = default;

  /// Opens `path`, which is resolved beneath `dir` ("." is `dir` itself). `flags` as open(2); O_CLOEXEC is added.
  virtual Result<int> open_at(int dir, const std::string& path, int flags) = 0;
  /// Opens a path from the command line, resolved as open(2) does, including symbolic links. `flags`: O_CLOEXEC is
  /// added.
  virtual Result<int> open_named(const std::string& path, int flags);
  /// Opens the file of `fd` again; `fd` may be an O_PATH descriptor. `flags` as open(2); O_CLOEXEC is added.
  virtual Result<int> reopen(int fd, int flags) = 0;
  /// Returns the file handle of the file of `fd`, as name_to_handle_at(2): it identifies the file until that is
  /// deleted, even if it is renamed. An error if the filesystem has no file handles.
  virtual Result<std::vector<std::uint8_t>> handle_of(int fd) = 0;
  /// Opens the file of a handle. `mount`: any file of its filesystem, not open with O_PATH. `flags` as open(2);
  /// O_CLOEXEC is added. Errors: ESTALE if the file was deleted; EPERM if the caller lacks CAP_DAC_READ_SEARCH.
  virtual Result<int> open_handle(int mount, ByteView handle, int flags) = 0;
  virtual void close(int fd) = 0;

  /// Reads until `into` is full or the file ends; returns the number of bytes read.
  virtual Result<std::size_t> pread(int fd, ByteSpan into, FileOffset at) = 0;
  virtual Result<struct stat> status(int fd) = 0;
  /// Returns the status of the entry itself: a final symbolic link is not followed.
  virtual Result<struct stat> status_at(int dir, const std::string& path) = 0;
  virtual Result<struct statvfs> filesystem_status(int fd) = 0;

  /// Returns all entries of an open directory except "." and "..", in directory order.
  virtual Result<std::vector<DirectoryEntry>> list(int dir_fd) = 0;
  /// Returns the target of the symbolic link that `fd` is open on (O_PATH, O_NOFOLLOW).
  virtual Result<std::string> read_link(int fd) = 0;
  /// lseek(2) with SEEK_DATA or SEEK_HOLE; ENXIO if there is none after `from`.
  virtual Result<FileOffset> seek(int fd, FileOffset from, int whence) = 0;

  /// Updates the access time, if the filesystem is mounted so. Clears O_NOATIME of `fd`, so that later reads update it,
  /// too.
  /// Best effort.
  virtual void note_access(int fd) = 0;
  /// Starts to read the range into the page cache, for a later read. Best effort.
  virtual void prefetch(int fd, FileOffset at, std::uint64_t length) = 0;

  /// Returns true if `fd` is a descriptor of the kernel for that very file, so that inotify reports its changes. False
  /// for files that an implementation only presents.
  virtual bool is_on_disk(int /*fd*/) const { return true; }
  /// Checks access for the thread's effective user, groups and capabilities; EACCES if denied. `rights`: R_OK, W_OK,
  /// X_OK.
  virtual Result<void> check_rights(int fd, int rights) = 0;
  virtual Result<std::vector<std::string>> list_attributes(int fd) = 0;
  virtual Result<std::string> get_attribute(int fd, const std::string& name) = 0;

  // Operations that change files.

  /// Opens as open_at() with O_CREAT. `flags`: with O_EXCL an existing file gives EEXIST; with O_TMPFILE the new file
  /// has no name, and `path` is its directory.
  virtual Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) = 0;
  /// Writes all of `from`. After an error any part of it may have been written.
  virtual Result<void> pwrite(int fd, ByteView from, FileOffset at) = 0;
  virtual Result<void> truncate(int fd, std::uint64_t size) = 0;
  /// fallocate(2).
  virtual Result<void> allocate(int fd, int mode, FileOffset at, std::uint64_t length) = 0;
  /// fsync(2), or fdatasync(2) with `data_only`. For a directory: makes its names durable.
  virtual Result<void> sync(int fd, bool data_only) = 0;
  /// Returns the error that close(2) would return for `fd`, which stays open: some filesystems report a full disk or a
  /// write error only on close.
  virtual Result<void> flush(int fd) = 0;
  /// Starts write-back of the range, so that a later sync waits less. Best effort.
  virtual void start_writeback(int fd, FileOffset at, std::uint64_t length) = 0;
  /// renameat2(2). `flags`: 0, RENAME_NOREPLACE, RENAME_EXCHANGE.
  virtual Result<void> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                                 unsigned flags) = 0;
  /// unlink(2), or rmdir(2) with `directory`.
  virtual Result<void> remove_at(int dir, const std::string& path, bool directory) = 0;
  virtual Result<void> make_directory_at(int dir, const std::string& path, mode_t mode) = 0;
  /// mknod(2): pipes, sockets, devices.
  virtual Result<void> make_node_at(int dir, const std::string& path, mode_t mode, dev_t device) = 0;
  /// Adds a name to the file that `fd` is open on.
  virtual Result<void> link_at(int fd, int to_dir, const std::string& to) = 0;
  virtual Result<void> make_symlink_at(const std::string& target, int dir, const std::string& path) = 0;
  /// EOPNOTSUPP for a symbolic link.
  virtual Result<void> change_mode(int fd, mode_t mode) = 0;
  /// `user`, `group`: -1 means no change.
  virtual Result<void> change_owner(int fd, uid_t user, gid_t group) = 0;
  /// Sets access and modification time; UTIME_NOW and UTIME_OMIT as utimensat(2).
  virtual Result<void> set_times(int fd, const std::array<struct timespec, 2>& times) = 0;
  /// `flags`: 0, XATTR_CREATE, XATTR_REPLACE.
  virtual Result<void> set_attribute(int fd, const std::string& name, const std::string& value, int flags) = 0;
  virtual Result<void> remove_attribute(int fd, const std::string& name) = 0;
  /// flock(2) with LOCK_NB. Returns false if another holder has a conflicting lock. `operation`: LOCK_SH, LOCK_EX or
  /// LOCK_UN.
  virtual Result<bool> try_lock(int fd, int operation) = 0;
};

/// Returns the implementation that calls the operating system.
FileOps& system_files();
/// Returns the same without openat2(2), as on kernels before 5.6. For tests.
FileOps& portable_files();

/// Owns an open descriptor and closes it with the FileOps that opened it. Movable.
class Descriptor {
 public:
  Descriptor() = default;
  Descriptor(FileOps& files, int fd) : files_(&files), fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : files_(other.files_), fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    if (this != &other) {
      reset();
      files_ = other.files_;
      fd_ = std::exchange(other.fd_, -1);
    }
    return *this;
  }
  ~Descriptor() { reset(); }

  int fd() const { return fd_; }
  bool is_open() const { return fd_ >= 0; }
  /// Releases ownership; the caller closes the descriptor.
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) files_->close(std::exchange(fd_, -1));
  }

 private:
  FileOps* files_ = nullptr;
  int fd_ = -1;
};

}  // namespace cframefs::frame
