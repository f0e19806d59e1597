// The directory of a disk cache and its 256 sub-directories, "00" to "ff".
//
// The directory belongs to the user of the process and only that user may write to it, so what lies in it comes from
// processes of that user. Symbolic links are not followed in any case.
//
// Thread safety: functions only. Ownership: the caller owns descriptors. Errors: as the functions say.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "frame/remote/objects/system_fd.h"

namespace cframefs::frame {

/// Opens the directory, and makes it if it is missing. Returns no descriptor if it cannot be made or read for a reason
/// that lies with the disk. io EACCES if it belongs to another user or others may write to it; io ENOENT if its parent
/// is missing; io ENOTDIR if it is no directory, or a symbolic link.
codec::Result<SystemFd> open_cache_directory(const std::string& path);

/// Opens a sub-directory; not open if that fails.
SystemFd open_subdirectory(int cache, unsigned directory, bool makes);

/// Opens a file of a sub-directory for reading; not open if that fails, with errno ELOOP if a symbolic link is in its
/// place. Of a pipe it waits for no writer.
SystemFd open_block_file(int cache, unsigned directory, const std::string& name);
/// Does the same without openat2(2), as on kernels before 5.6.
SystemFd open_block_file_by_steps(int cache, unsigned directory, const std::string& name);

/// A file of a sub-directory that holds a block.
struct DiskBlockFile {
  unsigned directory = 0;
  std::string name;
  std::uint64_t bytes = 0;
  std::int64_t used = 0;  // when it was last used, in nanoseconds since 1970
};

struct DirectoryContent {
  std::vector<DiskBlockFile> blocks;
  std::uint64_t bytes = 0;  // of blocks and of files that are being written
};

/// Returns what a sub-directory holds. Removes files that no process has finished to write for ten minutes.
DirectoryContent content_of(int cache, unsigned directory);

/// A file of a sub-directory that is being written, under a temporary name. Removed on destruction unless it was kept.
/// Thread safety: one thread. Ownership: borrows the descriptor of the sub-directory.
class NewBlockFile {
 public:
  /// Makes the file with its final length, so that content_of() counts it from the beginning.
  NewBlockFile(int subdirectory, std::uint64_t bytes);
  ~NewBlockFile();
  NewBlockFile(const NewBlockFile&) = delete;
  NewBlockFile& operator=(const NewBlockFile&) = delete;

  bool is_open() const { return fd_.is_open(); }
  /// Writes the content and gives the file its name. Returns 0, or an errno.
  int write_as(const std::string& name, codec::ByteView header, codec::ByteView body);

 private:
  const int subdirectory_;
  const std::string temporary_;
  SystemFd fd_;
  bool is_named_ = false;
};

/// Gives a file a temporary name, so that one process alone removes it. Returns the name, empty if that fails.
std::string take_away(int subdirectory, const std::string& name);

/// Returns a random number, for names and choices.
std::uint64_t random_number();

}  // namespace cframefs::frame
