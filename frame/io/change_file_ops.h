// The interface of file operations that change a tree of files and directories. Paths, open files, threads and errors:
// as read_file_ops.h.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include <sys/stat.h>

#include "frame/io/read_file_ops.h"

namespace cframefs::frame {

/// An action of ChangeFileOps::try_byte_lock().
enum class ByteLock : std::uint8_t {
  share,    // take a shared lock
  release,  // release the lock
  examine,  // change nothing: is there a lock that conflicts with an exclusive one?
};

class ChangeFileOps {
 public:
  virtual ~ChangeFileOps() = default;

  /// Opens as open_at() with O_CREAT. `flags`: with O_EXCL an existing file gives EEXIST; with O_TMPFILE the new file
  /// has no name, and `path` is its directory.
  virtual Result<OpenFile> create_at(OpenFile dir, const std::string& path, int flags, mode_t mode) = 0;
  /// Writes all of `from`. After an error any part of it may have been written.
  virtual Result<void> pwrite(OpenFile file, ByteView from, FileOffset at) = 0;
  virtual Result<void> truncate(OpenFile file, std::uint64_t size) = 0;
  /// fallocate(2).
  virtual Result<void> allocate(OpenFile file, int mode, FileOffset at, std::uint64_t length) = 0;
  /// fsync(2), or fdatasync(2) with `data_only`. For a directory: makes its names durable.
  virtual Result<void> sync(OpenFile file, bool data_only) = 0;
  /// Returns the error that close(2) would return for `file`, which stays open: some filesystems report a full disk or
  /// a write error only on close.
  virtual Result<void> flush(OpenFile file) = 0;
  /// Starts write-back of the range, so that a later sync waits less. Best effort.
  virtual void start_writeback(OpenFile file, FileOffset at, std::uint64_t length) = 0;

  /// renameat2(2). `flags`: 0, RENAME_NOREPLACE, RENAME_EXCHANGE.
  virtual Result<void> rename_at(OpenFile from_dir, const std::string& from, OpenFile to_dir, const std::string& to,
                                 unsigned flags) = 0;
  /// unlink(2), or rmdir(2) with `directory`.
  virtual Result<void> remove_at(OpenFile dir, const std::string& path, bool directory) = 0;
  virtual Result<void> make_directory_at(OpenFile dir, const std::string& path, mode_t mode) = 0;
  /// mknod(2): pipes, sockets, devices.
  virtual Result<void> make_node_at(OpenFile dir, const std::string& path, mode_t mode, dev_t device) = 0;
  /// Adds a name to the file that `file` is open on.
  virtual Result<void> link_at(OpenFile file, OpenFile to_dir, const std::string& to) = 0;
  virtual Result<void> make_symlink_at(const std::string& target, OpenFile dir, const std::string& path) = 0;

  /// EOPNOTSUPP for a symbolic link.
  virtual Result<void> change_mode(OpenFile file, mode_t mode) = 0;
  /// `user`, `group`: -1 means no change.
  virtual Result<void> change_owner(OpenFile file, uid_t user, gid_t group) = 0;
  /// Sets access and modification time; UTIME_NOW and UTIME_OMIT as utimensat(2).
  virtual Result<void> set_times(OpenFile file, const std::array<struct timespec, 2>& times) = 0;
  /// Updates the access time, if the filesystem is mounted so. Clears O_NOATIME of `file`, so that later reads update
  /// it, too. Best effort.
  virtual void note_access(OpenFile file) = 0;
  /// `flags`: 0, XATTR_CREATE, XATTR_REPLACE.
  virtual Result<void> set_attribute(OpenFile file, const std::string& name, const std::string& value, int flags) = 0;
  virtual Result<void> remove_attribute(OpenFile file, const std::string& name) = 0;

  /// Takes, releases or examines a lock of fcntl(2) on one byte, which belongs to the open file (F_OFD_SETLK). Returns
  /// false if another open file has a conflicting lock.
  virtual Result<bool> try_byte_lock(OpenFile file, FileOffset at, ByteLock action) = 0;
};

}  // namespace cframefs::frame
