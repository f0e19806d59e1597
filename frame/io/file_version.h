// What identifies a state of a file: of a file of the system, or of an object that something else serves.
#pragma once

#include <cstdint>
#include <ctime>

namespace cframefs::frame {

/// Identifies a state of a file, as far as its source can. Fields that a source does not have are 0.
struct FileVersion {
  std::uint64_t device = 0;
  std::uint64_t inode = 0;
  std::uint64_t size = 0;
  std::int64_t mtime_ns = 0;
  std::int64_t ctime_ns = 0;
  std::uint64_t tag = 0;        // of an object that is not a file of the system: a hash of its entity tag
  struct timespec modified {};  // exact, while mtime_ns wraps for times centuries away
  /// True if one more change could get the same timestamp, because ctime was not older than the timestamp granularity
  /// when this object was made (git calls such a file "racily clean"). False for an object with a tag.
  bool racy = true;

  /// Returns true if the file may change repeatedly while its source reports no change: it is racy, and its timestamp
  /// has no fraction of a second. With finer timestamps a change is detected at most a moment late.
  bool may_hide_changes() const { return racy && is_coarse(); }

  /// Compares all fields except `modified` and `racy`.
  bool operator==(const FileVersion& other) const {
    return device == other.device && inode == other.inode && size == other.size && mtime_ns == other.mtime_ns &&
           ctime_ns == other.ctime_ns && tag == other.tag;
  }
  /// Returns true if at most the ctime differs: mode, owner or links may have changed, and the content has not.
  bool has_content_of(const FileVersion& other) const {
    FileVersion same = *this;
    same.ctime_ns = other.ctime_ns;
    return same == other;
  }
  /// Returns true if data that were read at this version are valid at version `now`. False if a second change so soon
  /// after the first one could have gone undetected; the caller then reads again.
  bool still_matches(const FileVersion& now) const { return *this == now && (!racy || (now.racy && !now.is_coarse())); }
  /// Returns true if the timestamp has no fraction of a second: the filesystem's timestamps may have that granularity.
  bool is_coarse() const { return ctime_ns % 1'000'000'000 == 0; }
};

}  // namespace cframefs::frame
