#include "fs/fuse/remount.h"

#include <array>
#include <cerrno>
#include <string>
#include <string_view>
#include <vector>

#include <sys/mount.h>

#include "fs/fuse/mount_point.h"
#include "fs/util/mount_info.h"

namespace cframefs::fs {
namespace {

struct Flag {
  std::string_view set;
  std::string_view clear;
  unsigned long bit;
};

constexpr std::array<Flag, 7> kFlags = {{{"nosuid", "suid", MS_NOSUID},
                                         {"nodev", "dev", MS_NODEV},
                                         {"noexec", "exec", MS_NOEXEC},
                                         {"sync", "async", MS_SYNCHRONOUS},
                                         {"noatime", "atime", MS_NOATIME},
                                         {"nodiratime", "diratime", MS_NODIRATIME},
                                         {"relatime", "norelatime", MS_RELATIME}}};

unsigned long with(unsigned long flags, const std::vector<std::string>& options) {
  for (const std::string& option : options) {
    for (const Flag& flag : kFlags) {
      if (option == flag.set) flags |= flag.bit;
      if (option == flag.clear) flags &= ~flag.bit;
    }
  }
  return flags;
}

}  // namespace

codec::Result<void> remount(const MountOptions& options) {
  const auto mountpoint = real_path(options.mountpoint);
  if (!mountpoint) return codec::Failure(mountpoint.error());
  if (!mount_at(*mountpoint)) {
    return failure_at(*mountpoint, codec::invalid("cannot remount: no cframefs is mounted there"));
  }
  unsigned long flags = with(with(MS_REMOUNT, mount_flags_at(*mountpoint)), options.daemon.fuse_options);
  if (options.read_only) flags |= MS_RDONLY;
  if (::mount(nullptr, mountpoint->c_str(), nullptr, flags, nullptr) != 0) {
    const int why = errno;
    return failure_at(*mountpoint,
                      codec::io_error(why, "remount", why == EBUSY ? "a program has a file open for writing" : ""));
  }
  return {};
}

}  // namespace cframefs::fs
