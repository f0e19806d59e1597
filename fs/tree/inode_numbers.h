// The inode numbers that the mount shows. What lies on different filesystems below the source is shown under one
// device, so its numbers must differ, or programs take two files for one: tar stores the second as a link to the first.
//
// The numbers of the source's own filesystem stay as they are. Those of another one get its place in the order of
// appearance as higher bits. What does not fit into that is numbered by a table. A number stays for the life of the
// mount, unless it is still shown for another file: a commit may put a new file in the place of a frame, whose nodes
// keep the number of the old one while the filesystem below gives that to the next file. NodeTable looks. Two bits (61
// and 62) of what is shown are taken, and bit 62 is never set here.
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
  /// Marks the number of the decoded view of a file, so that no program takes it for the same file as the raw one.
  static constexpr std::uint64_t kView = std::uint64_t{1} << 62;

  /// The filesystem whose numbers stay. Once, before others are asked for.
  void set_home(std::uint64_t device) { home_ = device; }
  std::uint64_t shown(std::uint64_t device, std::uint64_t inode);
  /// Another number for a file whose own one is still shown for a file that has left it.
  std::uint64_t substitute(std::uint64_t device, std::uint64_t inode);
  /// A number that no file has.
  std::uint64_t fresh();

 private:
  using File = std::pair<std::uint64_t, std::uint64_t>;  // device, inode

  std::uint64_t table_number(std::uint64_t device, std::uint64_t inode) REQUIRES(mutex_);

  std::uint64_t home_ = 0;
  codec::Mutex mutex_;
  std::unordered_map<std::uint64_t, std::uint64_t> devices_ GUARDED_BY(mutex_);  // in the order of appearance, from 0
  std::uint64_t next_other_ GUARDED_BY(mutex_) = 0;
  std::map<File, std::uint64_t> others_ GUARDED_BY(mutex_);  // what does not fit, and substitutes
};

}  // namespace cframefs::fs
