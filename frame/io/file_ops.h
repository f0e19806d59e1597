// Every effect on files goes through this interface; tests replace it to fail, tear or stop it at any step.
//
// The calls are those of POSIX with `*at` resolution, so that nothing outside the directory that `dir` refers to is
// reached: paths are opened beneath `dir` and symbolic links in them are not followed. Attributes are those of an open
// descriptor, which may be one of O_PATH. Retrying on EINTR and continuing short transfers is done here, once.
//
// Thread safety: all members may be called at once. Ownership: the caller closes what it opened; Descriptor does it.
// Errors: kind io with the system's errno.
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
  unsigned char type = 0;  // DT_*; DT_UNKNOWN is resolved by the implementation
};

class FileOps {
 public:
  virtual ~FileOps() = default;

  /// `path` is relative to `dir` and resolved beneath it ("." is `dir` itself). `flags` as open(2); O_CLOEXEC is added.
  virtual Result<int> open_at(int dir, const std::string& path, int flags) = 0;
  /// A path that the user of a program gave: resolved as open(2) does, links and all. `flags`: O_CLOEXEC is added.
  virtual Result<int> open_named(const std::string& path, int flags);
  /// The file that `fd` is open on, perhaps with O_PATH, once more. `flags` as open(2); O_CLOEXEC is added.
  virtual Result<int> reopen(int fd, int flags) = 0;
  /// What names the file that `fd` is open on for as long as it is there, wherever its names go. An error where the
  /// filesystem has no such thing.
  virtual Result<std::vector<std::uint8_t>> handle_of(int fd) = 0;
  /// Opens the file of a handle; `mount`: any file of its filesystem, not open with O_PATH. ESTALE: it is gone. EPERM:
  /// the caller may not do so (CAP_DAC_READ_SEARCH). `flags` as open(2); O_CLOEXEC is added.
  virtual Result<int> open_handle(int mount, ByteView handle, int flags) = 0;
  virtual void close(int fd) = 0;

  /// Reads until `into` is full or the file ends; returns the number of bytes read.
  virtual Result<std::size_t> pread(int fd, ByteSpan into, FileOffset at) = 0;
  virtual Result<struct stat> status(int fd) = 0;
  /// Of the entry itself: a final symbolic link is not followed.
  virtual Result<struct stat> status_at(int dir, const std::string& path) = 0;
  virtual Result<struct statvfs> filesystem_status(int fd) = 0;

  /// Every entry of an open directory but "." and "..", in the order of the directory.
  virtual Result<std::vector<DirectoryEntry>> list(int dir_fd) = 0;
  /// The target of the symbolic link that `fd` is open on (O_PATH, O_NOFOLLOW).
  virtual Result<std::string> read_link(int fd) = 0;
  /// lseek(2) with SEEK_DATA or SEEK_HOLE; ENXIO when there is none after `from`.
  virtual Result<FileOffset> seek(int fd, FileOffset from, int whence) = 0;

  /// A program reads the file: its time of access moves if the filesystem has it so, also if `fd` was opened with
  /// O_NOATIME; reads to come move it, too. Promises nothing.
  virtual void note_access(int fd) = 0;
  /// Has the disk begin to read what stands there, so that a read to come finds it in memory. Promises nothing.
  virtual void prefetch(int fd, FileOffset at, std::uint64_t length) = 0;

  /// Whether what the descriptor stands for is what it is to the kernel, so that the kernel can tell of its changes.
  virtual bool is_on_disk(int /*fd*/) const { return true; }
  /// Whether the thread's user, groups and capabilities allow it: nothing, or EACCES. `rights`: R_OK, W_OK, X_OK.
  virtual Result<void> check_rights(int fd, int rights) = 0;
  virtual Result<std::vector<std::string>> list_attributes(int fd) = 0;
  virtual Result<std::string> get_attribute(int fd, const std::string& name) = 0;

  // From here on: what changes something.

  /// As open_at(), with O_CREAT. `flags`: O_EXCL makes an existing file EEXIST; with O_TMPFILE it is a file without a
  /// name in the directory `path`.
  virtual Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) = 0;
  /// All of `from`, or an error after which any part of it may have been written.
  virtual Result<void> pwrite(int fd, ByteView from, FileOffset at) = 0;
  virtual Result<void> truncate(int fd, std::uint64_t size) = 0;
  /// fallocate(2).
  virtual Result<void> allocate(int fd, int mode, FileOffset at, std::uint64_t length) = 0;
  /// fsync(2), or fdatasync(2) with `data_only`; of a directory: the names in it.
  virtual Result<void> sync(int fd, bool data_only) = 0;
  /// What close(2) would say of what was written through `fd`, which stays open: some filesystems tell of a full disk,
  /// or of an error, only then.
  virtual Result<void> flush(int fd) = 0;
  /// Has the disk begin with what was written there, so that a sync to come finds less to wait for. Promises nothing.
  virtual void start_writeback(int fd, FileOffset at, std::uint64_t length) = 0;
  /// renameat2(2). `flags`: 0, RENAME_NOREPLACE, RENAME_EXCHANGE.
  virtual Result<void> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                                 unsigned flags) = 0;
  /// unlink(2), or rmdir(2) with `directory`.
  virtual Result<void> remove_at(int dir, const std::string& path, bool directory) = 0;
  virtual Result<void> make_directory_at(int dir, const std::string& path, mode_t mode) = 0;
  /// mknod(2): pipes, sockets, devices.
  virtual Result<void> make_node_at(int dir, const std::string& path, mode_t mode, dev_t device) = 0;
  /// One more name of the file that `fd` is open on.
  virtual Result<void> link_at(int fd, int to_dir, const std::string& to) = 0;
  virtual Result<void> make_symlink_at(const std::string& target, int dir, const std::string& path) = 0;
  /// EOPNOTSUPP for a symbolic link.
  virtual Result<void> change_mode(int fd, mode_t mode) = 0;
  /// `user`, `group`: -1 leaves it as it is.
  virtual Result<void> change_owner(int fd, uid_t user, gid_t group) = 0;
  /// Access and modification time; UTIME_NOW and UTIME_OMIT as utimensat(2).
  virtual Result<void> set_times(int fd, const std::array<struct timespec, 2>& times) = 0;
  /// `flags`: 0, XATTR_CREATE, XATTR_REPLACE.
  virtual Result<void> set_attribute(int fd, const std::string& name, const std::string& value, int flags) = 0;
  virtual Result<void> remove_attribute(int fd, const std::string& name) = 0;
  /// flock(2) with LOCK_NB: false if somebody else holds a lock in the way. `operation`: LOCK_SH, LOCK_EX or LOCK_UN.
  virtual Result<bool> try_lock(int fd, int operation) = 0;
};

/// The operating system's.
FileOps& system_files();
/// The same without openat2(2), as on kernels before 5.6.
FileOps& portable_files();

/// An open descriptor, closed with the operations that opened it. Movable.
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
  /// Gives the descriptor away; the caller closes it.
  int release() { return std::exchange(fd_, -1); }
  void reset() {
    if (fd_ >= 0) files_->close(std::exchange(fd_, -1));
  }

 private:
  FileOps* files_ = nullptr;
  int fd_ = -1;
};

}  // namespace cframefs::frame
