// A temporary file beside a frame that replaces it atomically.
//
// The temporary name derives from the frame's name, so that a file left by a crash is overwritten the next time; fs
// hides such names. Mode, owner and extended attributes are copied from the file that is replaced.
//
// Thread safety: one thread. Ownership: the descriptor is shared; the file is removed on destruction unless it was
// published. Errors: io.
#pragma once

#include <memory>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Prefix of temporary files: files that are being written, or that a crash left.
inline constexpr const char* kTemporaryPrefix = ".cframefs-tmp.";

/// Returns true if a change of mode, owner, times or attributes failed because it is not permitted or not supported by
/// the filesystem.
bool is_refused_change(const Error& error);

class ReplacementFile {
 public:
  /// Creates an empty file beside `path` (beneath `dir`). `original`: descriptor of the file at `path`.
  static Result<ReplacementFile> create(FileOps& files, OpenFile dir, const std::string& path, OpenFile original);
  ReplacementFile(ReplacementFile&& other) noexcept;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();

  OpenFile handle() const { return file_->handle(); }
  std::shared_ptr<const Descriptor> file() const { return file_; }

  /// Returns the temporary path beneath `dir`; empty once the file is published or has no name.
  const std::string& temporary_name() const { return temporary_; }
  /// Copies the access time of the replaced file and, if `content_kept`, its modification time.
  Result<void> keep_times(bool content_kept);
  Result<void> sync() { return files_->sync(handle(), false); }
  /// Replaces the file at `path` by this one. The name is durable once the directory is synced. stale: another program
  /// removed or replaced the file at `path`; it is left unchanged.
  Result<void> publish();
  /// Removes the temporary name; the open file remains without a name.
  Result<void> drop_name();

 private:
  ReplacementFile(FileOps& files, OpenFile dir, std::string path, std::string temporary, const struct stat& original);
  Result<void> make(mode_t mode);
  Result<void> take_mode(mode_t mode);
  Result<void> take_attributes(OpenFile original);

  FileOps* files_;
  OpenFile dir_;
  std::string path_;
  std::string temporary_;  // empty: nothing to remove
  struct stat original_;
  std::shared_ptr<const Descriptor> file_;
};

/// Makes the names in a directory durable, if the filesystem supports that.
Result<void> sync_directory(FileOps& files, OpenFile file);
/// Syncs the directory that holds `path`.
Result<void> sync_directory_of(FileOps& files, OpenFile dir, const std::string& path);

}  // namespace cframefs::frame
