// Finds the files with the most bytes read and written, in memory that does not depend on the number of files.
//
// The table has kFiles places (the space-saving algorithm of Metwally, Agrawal and El Abbadi). A file that is not in a
// full table replaces the one with the fewest bytes and inherits its bytes as `inherited`: the true number of bytes is
// between `bytes() - inherited` and `bytes()`. A file with more than 1 / kFiles of all bytes is always in the table.
//
// Thread safety: all members may be called concurrently. Locks: its mutex, under which no other lock is taken. Units:
// bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class BusyFiles {
 public:
  static constexpr std::size_t kFiles = 64;

  struct File {
    std::uint64_t id = 0;
    std::string path;
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
    std::uint64_t requests = 0;
    std::uint64_t inherited = 0;
    std::uint64_t bytes() const { return inherited + read_bytes + write_bytes; }
  };
  struct Traffic {
    std::uint64_t read_bytes = 0;
    std::uint64_t write_bytes = 0;
  };
  /// Returns the path of a file.
  using PathOf = std::function<std::string(std::uint64_t id)>;

  /// Counts a request. Calls `path_of`, without a lock, if the file is not in the table.
  void note(std::uint64_t id, const Traffic& traffic, const PathOf& path_of);
  /// Returns the files of the table, those with the most bytes first.
  std::vector<File> files() const;

 private:
  bool add_to_known(std::uint64_t id, const Traffic& traffic) REQUIRES(mutex_);

  mutable codec::Mutex mutex_;
  std::vector<std::uint64_t> ids_ GUARDED_BY(mutex_);  // of files_, together in few cache lines
  std::vector<File> files_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
