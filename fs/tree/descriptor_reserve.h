// Reserves file descriptors for short operations: look-ups, attributes, listings and commits continue when open files
// use all others.
//
// The system assigns the lowest free number, so a high number means that most are in use; nothing is counted.
// Thread safety: immutable.
#pragma once

#include <algorithm>

#include <sys/resource.h>

#include "frame/io/read_file_ops.h"

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

  /// Returns whether the descriptor of `file` is in the reserve, so that a file opened by a program, or a directory
  /// held for later look-ups, must not keep it.
  bool is_kept_back(const frame::ReadFileOps& files, frame::OpenFile file) const {
    return number_of(files, file) >= for_files_;
  }
  /// As is_kept_back(), for a directory opened by a program. Half of the reserve serves these: most are listed and
  /// closed.
  bool is_kept_back_from_listings(const frame::ReadFileOps& files, frame::OpenFile file) const {
    return number_of(files, file) >= for_directories_;
  }

 private:
  /// Returns -1 if the file takes up no descriptor.
  static int number_of(const frame::ReadFileOps& files, frame::OpenFile file) {
    return files.system_descriptor(file).value_or(frame::SystemDescriptor{}).number;
  }

  static constexpr rlim_t kUnlimited = 1U << 30U;
  static constexpr int kMaxKept = 256;

  int for_files_ = static_cast<int>(kUnlimited);
  int for_directories_ = static_cast<int>(kUnlimited);
};

}  // namespace cframefs::fs
