#include "frame/io/system_version.h"

#include <cstdint>

#include "frame/base/elapsed.h"

namespace cframefs::frame {

namespace {

std::int64_t nanoseconds(const struct timespec& time) {
  // Wraps for times centuries away; only equality matters.
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time.tv_sec) * 1'000'000'000U +
                                   static_cast<std::uint64_t>(time.tv_nsec));
}

// The kernel takes timestamps from its tick, of at most 10 ms; some filesystems store whole seconds only.
constexpr std::int64_t kTickNs = 100'000'000;
constexpr std::int64_t kSecondNs = 1'000'000'000;

bool is_racy(const struct timespec& changed) {
  const std::int64_t age = age_ns(changed);
  const std::int64_t step = changed.tv_nsec == 0 ? 2 * kSecondNs : kTickNs;
  // A timestamp in the future is not racy, either: a change made now cannot get it.
  return age <= step && age >= -step;
}

}  // namespace

FileVersion version_of(const struct stat& status) {
  FileVersion version;
  version.device = status.st_dev;
  version.inode = status.st_ino;
  version.size = static_cast<std::uint64_t>(status.st_size);
  version.modified = status.st_mtim;
  version.mtime_ns = nanoseconds(status.st_mtim);
  version.ctime_ns = nanoseconds(status.st_ctim);
  version.racy = is_racy(status.st_ctim);
  return version;
}

}  // namespace cframefs::frame
