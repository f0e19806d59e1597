// Assigns the inode numbers that the mount shows. Files of different filesystems below the source appear on one device,
// so their numbers must differ, or programs take two files for one: tar stores the second as a link to the first.
//
// Numbers of the source's own filesystem stay unchanged. Numbers of another filesystem get its index, in order of
// appearance, as higher bits. A table assigns a number to each file whose own number does not fit. A number stays for
// the life of the mount, unless it is still shown for another file: a commit may replace the file of a frame, whose
// nodes keep the old number while the filesystem below reuses that number for the next file. NodeTable checks for this.
// Bits 61 and 62 of a shown number are reserved; this class never sets bit 62.
//
// Thread safety: all members, after set_home(). Numbers of the home filesystem take no lock.
#pragma once

#include <cstdint>
#include <map>
#include <unordered_map>
#include <utility>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class InodeNumbers {
 public:
  /// Set in the number of the decoded view of a file, so that no program takes it for the same file as the raw one.
  static constexpr std::uint64_t kView = std::uint64_t{1} << 62;

  /// Sets the filesystem whose numbers stay unchanged. Called once, before any other member.
  void set_home(std::uint64_t device) { home_ = device; }
  /// Returns the number shown for a file.
  std::uint64_t shown(std::uint64_t device, std::uint64_t inode);
  /// Returns another number for a file, if shown() is still in use for the file that had this inode before.
  std::uint64_t substitute(std::uint64_t device, std::uint64_t inode);
  /// Returns a number that no file has.
  std::uint64_t fresh();

 private:
  using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

  std::uint64_t table_number(std::uint64_t device, std::uint64_t inode) REQUIRES(mutex_);

  std::uint64_t home_ = 0;
  codec::Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> devices_ GUARDED_BY(mutex_);  // index in order of appearance, from 0
  std::uint64_t next_other_ GUARDED_BY(mutex_) = 0;
  std::map<File, std::uint64_t> others_ GUARDED_BY(mutex_);  // numbers assigned by table, and substitutes
};

}  // namespace cframefs::fs
