// The calls of the FUSE device about files that the kernel reads and writes itself. The headers of the oldest release
// that this is built on lack them.
//
// Thread safety: constants.
#pragma once

#include <cstdint>

#include <sys/ioctl.h>

namespace cframefs::fs {

/// The argument of kOpenBacking.
struct BackingMap {
  std::int32_t file = -1;
  std::uint32_t flags = 0;
  std::uint64_t padding = 0;
};

/// FUSE_DEV_IOC_BACKING_OPEN: returns the id of an open file.
inline constexpr unsigned long kOpenBacking = _IOW(229, 1, BackingMap);
/// FUSE_DEV_IOC_BACKING_CLOSE: takes the id.
inline constexpr unsigned long kCloseBacking = _IOW(229, 2, std::uint32_t);

}  // namespace cframefs::fs
