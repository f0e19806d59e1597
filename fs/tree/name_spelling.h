// Handles sources with case-insensitive names (exFAT, vfat, NTFS, CIFS), on which one file has many spellings.
//
// A file must be one node under any spelling, or two programs that write it under two spellings lose each other's
// bytes; inode numbers do not always tell (a FUSE filesystem may have one for each spelling). So the mount uses one
// spelling for each entry: that of the directory's listing, with the suffix of a container in lower case, as NameMapper
// expects it. Only ASCII letters fold. Whether a filesystem folds case is determined once, by looking up an existing
// name in the other case.
//
// Thread safety: internally synchronised; no lock is held during system calls. Errors: those of listing.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/io/byte_source.h"
#include "frame/io/file_ops.h"

namespace cframefs::fs {

class NameSpelling {
 public:
  explicit NameSpelling(frame::ReadFileOps& files) : files_(files) {}

  /// Returns whether the filesystem of the directory folds case; nullopt while that is unknown. `name`: an entry of the
  /// directory, by which it may be determined.
  std::optional<bool> folds_case(frame::OpenFile directory, const std::string& name);
  /// Returns whether this directory folds case, as one of a filesystem may that otherwise does not; nullopt if none of
  /// its `names` tells.
  std::optional<bool> folds_in(frame::OpenFile directory, const std::vector<std::string>& names);
  /// Returns the spelling that the mount uses for an existing entry. REQUIRES: folds_case().
  codec::Result<std::string> of(frame::OpenFile directory, const std::string& name);
  /// Returns the name with its container suffix, if it has one, in lower case.
  static std::string with_known_suffix(const std::string& name);
  static std::string folded(const std::string& name);

 private:
  using Names = std::unordered_map<std::string, std::vector<std::string>>;  // spellings by folded name
  struct Listing {
    frame::FileVersion directory;
    std::shared_ptr<const Names> names;
  };

  /// Returns nullopt if `name` does not tell.
  std::optional<bool> find_out(frame::OpenFile directory, const std::string& name);
  /// Remembers what a directory tells of its filesystem, unless that is known.
  void note(frame::OpenFile directory, bool folds);
  codec::Result<std::shared_ptr<const Names>> names_in(frame::OpenFile directory);

  frame::ReadFileOps& files_;
  codec::Mutex mutex_;
  std::map<dev_t, bool> folding_ GUARDED_BY(mutex_);
  std::map<std::pair<dev_t, ino_t>, Listing> listings_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
