#include "fs/fuse/mount_point.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <optional>
#include <string_view>

#include <dirent.h>
#include <fcntl.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "codec/base/malloc_ptr.h"
#include "fs/util/log.h"
#include "fs/util/mount_info.h"
#include "fs/util/unmount.h"

namespace cframefs::fs {
namespace {

constexpr std::string_view kDescriptors = "/dev/fd/";

/// Unmounts a mount whose daemon has died: all calls on it fail with ENOTCONN. Returns true if it is unmounted.
bool clear_dead_mount(const std::string& mountpoint) {
  return umount2(mountpoint.c_str(), MNT_DETACH) == 0 || unmount_by_helper(mountpoint, Unmounting::lazy);
}

/// Returns true if the directory has entries.
bool has_entries(const std::string& path) {
  const auto close = [](DIR* directory) { ::closedir(directory); };
  const std::unique_ptr<DIR, decltype(close)> directory(::opendir(path.c_str()), close);
  if (!directory) return false;
  // NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread runs yet
  while (const dirent* entry = ::readdir(directory.get())) {
    const std::string_view name = static_cast<const char*>(entry->d_name);
    if (name != "." && name != "..") return true;
  }
  return false;
}

}  // namespace

codec::Failure failure_at(const std::string& path, codec::Failure failure) {
  failure.value().path = path;
  return failure;
}

codec::Result<std::string> real_path(const std::string& path) {
  const codec::MallocPtr<char> resolved(realpath(path.c_str(), nullptr));
  if (!resolved) return failure_at(path, codec::io_error(errno, "open"));
  return std::string(resolved.get());
}

MountPoint::~MountPoint() {
  for (; !made_.empty(); made_.pop_back())
    ::rmdir(made_.back().c_str());
}

codec::Result<void> MountPoint::open_descriptor(const std::string& path) {
  const dev_t fuse = makedev(10, 229);
  int fd = -1;
  const char* end = path.data() + path.size();
  const bool is_number = std::from_chars(path.data() + kDescriptors.size(), end, fd).ptr == end;
  struct stat status {};
  // Descriptors 0 to 2 are replaced when the daemon goes to the background.
  const bool is_fuse =
      is_number && fd > STDERR_FILENO && ::fstat(fd, &status) == 0 && S_ISCHR(status.st_mode) && status.st_rdev == fuse;
  if (!is_fuse) {
    return failure_at(path,
                      codec::invalid("not a descriptor of /dev/fuse (3 or above) that the parent process has opened"));
  }
  ::fcntl(fd, F_SETFD, FD_CLOEXEC);
  path_ = path;
  is_descriptor_ = true;
  return {};
}

codec::Result<void> MountPoint::make(const std::string& path, unsigned mode) {
  constexpr mode_t kParentMode = 0755;
  for (std::size_t end = path.find_first_not_of('/'); end < path.size();) {
    end = std::min(path.find('/', end), path.size());
    const std::string part = path.substr(0, end);
    const bool is_last = path.find_first_not_of('/', end) == std::string::npos;
    if (::mkdir(part.c_str(), is_last ? mode : kParentMode) == 0) {
      made_.push_back(part);
    } else if (errno != EEXIST) {
      return failure_at(part, codec::io_error(errno, "make the mount point"));
    }
    end = std::min(path.find_first_not_of('/', end), path.size());
  }
  return {};
}

codec::Result<void> MountPoint::open(const MountOptions& options) {
  const std::string& path = options.mountpoint;
  if (path.starts_with(kDescriptors)) return open_descriptor(path);
  // FORCE_SYNC, because the kernel would otherwise answer from cached attributes of a mount whose daemon is dead.
  // NO_AUTOMOUNT, because an automounter (x-systemd.automount) that has started this program waits for its mount.
  struct statx status {};
  const auto look = [&] {
    return statx(AT_FDCWD, path.c_str(), AT_STATX_FORCE_SYNC | AT_NO_AUTOMOUNT, STATX_TYPE, &status);
  };
  int failed = look();
  if (failed != 0 && errno == ENOTCONN && clear_dead_mount(path)) {
    log_warning(path + ": unmounted the mount of a daemon that had died");
    failed = look();
  }
  if (failed != 0 && errno == ENOENT && options.daemon.mkdir) {
    if (auto made = make(path, *options.daemon.mkdir); !made) return made;
    failed = look();
  }
  if (failed != 0) return failure_at(path, codec::io_error(errno, "mount point"));
  is_file_ = S_ISREG(status.stx_mode);
  if (!is_file_ && !S_ISDIR(status.stx_mode)) {
    return failure_at(path, codec::invalid("the mount point is neither a directory nor a regular file"));
  }
  // Resolve the mount point now: in the background the working directory differs, and after mounting, a look-up of it
  // would wait for this daemon's own answer.
  auto resolved = real_path(path);
  if (!resolved) return codec::Failure(resolved.error());
  path_ = *resolved;
  return {};
}

codec::Result<void> MountPoint::check(const SourceTree& tree, const MountOptions& options) {
  if (is_descriptor_) return {};
  if (frame::is_address(options.source)) {
    if (!options.daemon.nonempty) warning_ = covered({});
    return {};
  }
  auto source = real_path(options.source);
  if (!source) return codec::Failure(source.error());
  const std::string prefix = *source == "/" ? "/" : *source + "/";
  if (path_.starts_with(prefix)) {
    return failure_at(path_, codec::invalid("the mount point lies inside the source " + *source));
  }
  if (tree.is_single_file() && path_ == *source) {
    return failure_at(path_, codec::invalid("the mount point is the source itself"));
  }
  if (!options.daemon.nonempty) warning_ = covered(*source);
  return {};
}

std::string MountPoint::covered(const std::string& source) const {
  const std::string hint = " (the option nonempty prevents this warning)";
  const auto type = filesystem_at(path_);
  if (type) {
    // An automounter is to be covered.
    if (*type == "autofs") return {};
    return path_ + ": covers a filesystem of type " + *type + " that is mounted there already" + hint;
  }
  if (is_file_ || path_ == source || !has_entries(path_)) return {};
  return path_ + ": the directory is not empty; the mount hides what it contains" + hint;
}

void MountPoint::mounted() {
  made_.clear();
  if (!warning_.empty()) log_warning(warning_);
}

}  // namespace cframefs::fs
