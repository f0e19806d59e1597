// Keeps some of the descriptors that the process may have for what no program waits to close: look-ups, attributes,
// listings and commits go on while files that are open take all others.
//
// The system gives the lowest number that is free, so a high one tells that the others are taken; nothing is counted.
// Thread safety: immutable.
#pragma once

#include <algorithm>

#include <sys/resource.h>

namespace cframefs::fs {

class DescriptorReserve {
 public:
  DescriptorReserve() {
    rlimit limit{};
    if (::getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur >= kUnlimited) return;
    const int all = static_cast<int>(limit.rlim_cur);
    const int kept = std::min(all / 4, kMaxKept);
    for_files_ = all - kept;
    for_directories_ = all - kept / 2;
  }

  /// From a file that a program opens, and from a directory that is held for look-ups to come.
  bool is_kept_back(int fd) const { return fd >= for_files_; }
  /// The same from a directory that a program opens, most of which are listed and closed.
  bool is_kept_back_from_listings(int fd) const { return fd >= for_directories_; }

 private:
  static constexpr rlim_t kUnlimited = 1U << 30U;
  static constexpr int kMaxKept = 256;

  int for_files_ = static_cast<int>(kUnlimited);
  int for_directories_ = static_cast<int>(kUnlimited);
};

}  // namespace cframefs::fs
