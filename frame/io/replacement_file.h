// A file that is written beside another and takes its place, or never is seen.
//
// Its name is made from the other's, so that what a crash leaves is overwritten the next time; fs never shows it. Mode,
// owner and extended attributes are taken from the file that it replaces.
//
// Thread safety: one thread. Ownership: the descriptor is shared; the file is removed on destruction if it was not
// published. Errors: io.
#pragma once

#include <memory>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Names that begin so are ours: files that are being written, or that a crash left.
inline constexpr const char* kTemporaryPrefix = ".cframefs-tmp.";

/// The error of a change of mode, owner, times or attributes that the caller may not make, or that the filesystem does
/// not know.
bool is_refused_change(const Error& error);

class ReplacementFile {
 public:
  /// Makes an empty file beside `path` (beneath `dir`), which `original` is open on.
  static Result<ReplacementFile> create(FileOps& files, int dir, const std::string& path, int original);
  ReplacementFile(ReplacementFile&& other) noexcept;
  ReplacementFile& operator=(ReplacementFile&&) = delete;
  ~ReplacementFile();

  int fd() const { return file_->fd(); }
  std::shared_ptr<const Descriptor> file() const { return file_; }

  /// Its name beneath the directory that `dir` refers to, until it is published.
  const std::string& temporary_name() const { return temporary_; }
  /// Gives it the times of the file that it replaces; without `content_kept` the access time alone.
  Result<void> keep_times(bool content_kept);
  Result<void> sync() { return files_->sync(fd(), false); }
  /// Puts it in the place of the other, which goes. The name is durable once the directory is synced. stale: something
  /// else lies there, which stays.
  Result<void> publish();
  /// Takes its name away: the file goes on without.
  Result<void> drop_name();

 private:
  ReplacementFile(FileOps& files, int dir, std::string path, std::string temporary, const struct stat& original);
  Result<void> make(mode_t mode);
  Result<void> take_mode(mode_t mode);
  Result<void> take_attributes(int original);

  FileOps* files_;
  int dir_;
  std::string path_;
  std::string temporary_;  // empty: nothing to remove
  struct stat original_;
  std::shared_ptr<const Descriptor> file_;
};

/// Makes the names in a directory durable, where the filesystem has such a call.
Result<void> sync_directory(FileOps& files, int fd);
/// Syncs the directory that holds `path`.
Result<void> sync_directory_of(FileOps& files, int dir, const std::string& path);

}  // namespace cframefs::frame
