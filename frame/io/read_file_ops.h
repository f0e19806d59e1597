// The interface of file operations that read a tree of files and directories.
//
// The calls are those of POSIX with `*at` resolution: paths are resolved beneath `dir` and symbolic links in them are
// not followed, so no call reaches a file outside `dir`. Attributes are those of an open file, which may be open with
// O_PATH. Implementations retry on EINTR and continue short transfers, so callers need not. A tree need not lie on a
// disk: an OpenFile is a descriptor of the kernel only if system_descriptor() says so.
//
// Thread safety: all members may run concurrently. Ownership: the caller closes open files; class Descriptor does so.
// Errors: io, with the errno of the system call.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include <sys/stat.h>
#include <sys/statvfs.h>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/base/coordinates.h"
#include "frame/io/file_version.h"
#include "frame/io/range_hints.h"

namespace cframefs::frame {

using codec::ByteSpan;
using codec::ByteView;
using codec::Error;
using codec::ErrorKind;
using codec::Result;

/// An open file or directory, as a number of the implementation that opened it. No other implementation accepts it.
struct OpenFile {
  std::int32_t value = -1;  // -1: none

  bool is_open() const { return value >= 0; }
  bool operator==(const OpenFile&) const = default;
};

/// A descriptor of the kernel.
struct SystemDescriptor {
  int number = -1;
  /// True if it is open on the file of the OpenFile, so that inotify reports the changes of that file. False if an
  /// implementation keeps another file open for a file that it only presents.
  bool is_of_file = true;
};

struct DirectoryEntry {
  std::string name;
  std::uint64_t inode = 0;
  unsigned char type = 0;  // DT_*, never DT_UNKNOWN
};

class ReadFileOps : public RangeHints {
 public:
  /// Opens `path`, which is resolved beneath `dir` ("." is `dir` itself). `flags` as open(2); O_CLOEXEC is added.
  virtual Result<OpenFile> open_at(OpenFile dir, const std::string& path, int flags) = 0;
  /// Opens a path from the command line, resolved as open(2) does, including symbolic links. `flags`: O_CLOEXEC is
  /// added.
  virtual Result<OpenFile> open_named(const std::string& path, int flags);
  /// Opens the file of `file` again, which may be open with O_PATH. `flags` as open(2); O_CLOEXEC is added.
  virtual Result<OpenFile> reopen(OpenFile file, int flags) = 0;
  /// Returns the file handle of the file, as name_to_handle_at(2): it identifies the file until that is deleted, even
  /// if it is renamed. An error if the filesystem has no file handles.
  virtual Result<std::vector<std::uint8_t>> handle_of(OpenFile file) = 0;
  /// Opens the file of a handle. `mount`: any file of its filesystem, not open with O_PATH. `flags` as open(2);
  /// O_CLOEXEC is added. Errors: ESTALE if the file was deleted; EPERM if the caller lacks CAP_DAC_READ_SEARCH.
  virtual Result<OpenFile> open_handle(OpenFile mount, ByteView handle, int flags) = 0;
  virtual void close(OpenFile file) = 0;
  /// Returns the descriptor of the kernel that `file` takes up, or nullopt if it takes up none.
  virtual std::optional<SystemDescriptor> system_descriptor(OpenFile file) const = 0;

  /// Reads until `into` is full or the file ends; returns the number of bytes read.
  virtual Result<std::size_t> pread(OpenFile file, ByteSpan into, FileOffset at) = 0;
  virtual Result<struct stat> status(OpenFile file) = 0;
  /// Returns the status of the entry itself: a final symbolic link is not followed.
  virtual Result<struct stat> status_at(OpenFile dir, const std::string& path) = 0;
  /// Returns the present version of an open file. By default that of status().
  virtual Result<FileVersion> version(OpenFile file);
  virtual Result<struct statvfs> filesystem_status(OpenFile file) = 0;

  /// Returns all entries of an open directory except "." and "..", in directory order.
  virtual Result<std::vector<DirectoryEntry>> list(OpenFile dir) = 0;
  /// Returns the target of the symbolic link that `link` is open on (O_PATH, O_NOFOLLOW).
  virtual Result<std::string> read_link(OpenFile link) = 0;
  /// lseek(2) with SEEK_DATA or SEEK_HOLE; ENXIO if there is none after `from`.
  virtual Result<FileOffset> seek(OpenFile file, FileOffset from, int whence) = 0;
  /// Starts to read the range into the page cache, for a later read. Best effort.
  virtual void prefetch(OpenFile file, FileOffset at, std::uint64_t length) = 0;

  /// Checks access for the thread's effective user, groups and capabilities; EACCES if denied. `rights`: R_OK, W_OK,
  /// X_OK.
  virtual Result<void> check_rights(OpenFile file, int rights) = 0;
  virtual Result<std::vector<std::string>> list_attributes(OpenFile file) = 0;
  virtual Result<std::string> get_attribute(OpenFile file, const std::string& name) = 0;
  /// flock(2) with LOCK_NB. Returns false if another holder has a conflicting lock. `operation`: LOCK_SH, LOCK_EX or
  /// LOCK_UN. A reader locks, too, so this is here; it changes nothing.
  virtual Result<bool> try_lock(OpenFile file, int operation) = 0;
};

}  // namespace cframefs::frame
