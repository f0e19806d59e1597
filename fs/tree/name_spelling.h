// Sources that do not tell letters by their case (exFAT, vfat, NTFS, CIFS): one file, many spellings of its name.
//
// A file must be one node whatever it is asked for as, or two programs that write it under two spellings lose each
// other's bytes; inode numbers do not say so everywhere (a FUSE filesystem may have one for each spelling). So the
// mount calls each entry by one spelling: that of the directory's listing, with the suffix of a container in small
// letters, as names.h knows it. Letters are those of ASCII. Whether a filesystem folds case is found out once, by
// asking for the other case of a name that is there.
//
// Thread safety: internally synchronised; no lock is held while the system is called. Errors: those of listing.
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
  explicit NameSpelling(frame::FileOps& files) : files_(files) {}

  /// Whether the filesystem of the directory folds case. `name`: an entry, by which it may be found out; false as long
  /// as it is not known.
  bool folds_case(int directory, const std::string& name);
  /// What an existing entry is called. REQUIRES: folds_case().
  codec::Result<std::string> of(int directory, const std::string& name);
  /// The name with the suffix of a container, if it has one, in small letters.
  static std::string with_known_suffix(const std::string& name);
  static std::string folded(const std::string& name);

 private:
  using Names = std::unordered_map<std::string, std::vector<std::string>>;  // spellings by what they are folded
  struct Listing {
    frame::FileVersion directory;
    std::shared_ptr<const Names> names;
  };

  std::optional<bool> find_out(int directory, const std::string& name);
  codec::Result<std::shared_ptr<const Names>> names_in(int directory);

  frame::FileOps& files_;
  codec::Mutex mutex_;
  std::map<dev_t, bool> folding_ GUARDED_BY(mutex_);
  std::map<std::pair<dev_t, ino_t>, Listing> listings_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
