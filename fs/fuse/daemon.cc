#include "fs/fuse/daemon.h"

#include <algorithm>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <thread>

#include <fcntl.h>
#include <malloc.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codec/base/malloc_ptr.h"
#include "frame/store/store_files.h"
#include "fs/filesystem.h"
#include "fs/fuse/fuse_adapter.h"
#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/mount_guard.h"
#include "fs/util/log.h"
#include "fs/util/mount_info.h"
#include "fs/util/service_manager.h"

namespace cframefs::fs {
namespace {

// The kernel's read-ahead, in bytes. The kernel's default of 128 KiB would split reads into many requests.
constexpr std::uint64_t kReadahead = std::uint64_t{1} << 20;

codec::Failure at(const std::string& path, codec::Failure failure) {
  failure.value().path = path;
  return failure;
}

codec::Result<std::string> real_path(const std::string& path) {
  const codec::MallocPtr<char> resolved(realpath(path.c_str(), nullptr));
  if (!resolved) return at(path, codec::io_error(errno, "open"));
  return std::string(resolved.get());
}

/// Unmounts a mount whose daemon has died: all calls on it fail with ENOTCONN. Returns true if it is unmounted.
bool clear_dead_mount(const std::string& mountpoint) {
  if (umount2(mountpoint.c_str(), MNT_DETACH) == 0) return true;
  const pid_t child = fork();
  if (child == 0) {
    execlp("fusermount3", "fusermount3", "-u", "-z", "-q", "--", mountpoint.c_str(), nullptr);
    _exit(127);
  }
  int status = 0;
  return child > 0 && waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

/// Returns true if the mount point is a regular file, false if it is a directory.
codec::Result<bool> check_mountpoint(const std::string& mountpoint) {
  // FORCE_SYNC, because the kernel would otherwise answer from cached attributes of a mount whose daemon is dead.
  struct statx status {};
  const auto look = [&] { return statx(AT_FDCWD, mountpoint.c_str(), AT_STATX_FORCE_SYNC, STATX_TYPE, &status); };
  int failed = look();
  if (failed != 0 && errno == ENOTCONN && clear_dead_mount(mountpoint)) {
    log_warning(mountpoint + ": unmounted the mount of a daemon that had died");
    failed = look();
  }
  if (failed != 0) return at(mountpoint, codec::io_error(errno, "mount point"));
  if (S_ISREG(status.stx_mode)) return true;
  if (S_ISDIR(status.stx_mode)) return false;
  return at(mountpoint, codec::invalid("the mount point is neither a directory nor a regular file"));
}

/// Checks that the mount does not contain itself: the mount point must neither be inside the source nor be a
/// single-file source. (A directory source stays open beneath a mount over it.) `mountpoint`: resolved.
codec::Result<void> check_no_overlap(const SourceTree& tree, const std::string& source, const std::string& mountpoint) {
  auto real_source = real_path(source);
  if (!real_source) return codec::Failure(real_source.error());
  const std::string prefix = *real_source == "/" ? "/" : *real_source + "/";
  if (mountpoint.starts_with(prefix)) {
    return at(mountpoint, codec::invalid("the mount point lies inside the source " + *real_source));
  }
  if (tree.is_single_file() && mountpoint == *real_source) {
    return at(mountpoint, codec::invalid("the mount point is the source itself"));
  }
  return {};
}

std::string escape_commas(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

std::vector<std::string> mount_arguments(const MountOptions& options, bool read_only) {
  // With "ro" the kernel answers EROFS without a request.
  std::vector<std::string> arguments = {read_only ? "ro" : "rw", "default_permissions", "subtype=cframefs",
                                        "max_read=" + std::to_string(FuseAdapter::kMaxRead)};
  const auto given = [&](const std::string& prefix) {
    return std::any_of(options.daemon.fuse_options.begin(), options.daemon.fuse_options.end(),
                       [&](const std::string& option) { return option.starts_with(prefix); });
  };
  if (!given("fsname=")) arguments.push_back("fsname=" + escape_commas(options.source));
  arguments.insert(arguments.end(), options.daemon.fuse_options.begin(), options.daemon.fuse_options.end());
  return arguments;
}

/// Sets the kernel's read-ahead of the mount if permitted.
void raise_readahead(const MountIdentity& mount) {
  const std::string path = "/sys/class/bdi/" + device_numbers(mount) + "/read_ahead_kb";
  std::ofstream setting(path);
  setting << kReadahead / 1024 << std::flush;
  if (!setting) log_debug("cannot set the kernel's read-ahead: no permission to write " + path);
}

/// The pipe through which the background process reports to its parent that the mount serves.
class ReadyPipe {
 public:
  codec::Result<void> open() {
    if (pipe2(ends_, O_CLOEXEC) != 0) return codec::io_error(errno, "pipe");
    return {};
  }
  void notify_parent() {
    const char ready = 1;
    static_cast<void>(::write(ends_[1], &ready, 1));
  }
  /// Called in the parent. Returns true once the mount serves; false if the child ended before.
  bool wait() {
    ::close(ends_[1]);
    char answer = 0;
    ssize_t got = 0;
    do {
      got = ::read(ends_[0], &answer, 1);
    } while (got < 0 && errno == EINTR);
    return got == 1;
  }
  void close_reader() { ::close(ends_[0]); }

 private:
  int ends_[2] = {-1, -1};
};

/// Opens /dev/null for standard streams that are closed. Otherwise the next files opened would get descriptors 0 to 2,
/// which detach_from_terminal() replaces.
void reserve_stdio_fds() {
  int fd = 0;
  do {
    fd = ::open("/dev/null", O_RDWR);
  } while (fd >= 0 && fd <= 2);
  if (fd > 2) ::close(fd);
}

void detach_from_terminal() {
  setsid();
  static_cast<void>(chdir("/"));
  const int null = ::open("/dev/null", O_RDWR | O_CLOEXEC);
  if (null < 0) return;
  for (int fd = 0; fd <= 2; ++fd)
    dup2(null, fd);
  if (null > 2) ::close(null);
}

/// Limits the memory that the C library keeps after free(). By default it raises its mmap threshold with each large
/// block freed: with chunks of one 16 MiB block it kept a third of what the mount may use beyond its cache. It also
/// keeps some MiB in each of its arenas, 8 per processor: with threads that encode, commit and serve, this was as much
/// as the limit of the whole mount.
void tune_malloc() {
  constexpr int kLarge = 4 << 20;
  constexpr int kHeaps = 4;
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread runs yet
  mallopt(M_ARENA_MAX, kHeaps);
  mallopt(M_MMAP_THRESHOLD, kLarge);
  mallopt(M_TRIM_THRESHOLD, 2 * kLarge);
  // NOLINTEND(concurrency-mt-unsafe)
}

unsigned service_threads(const MountOptions& options) {
  if (options.daemon.single_thread) return 1;
  return std::max(2U, std::thread::hardware_concurrency());
}

/// Sends a state to the service manager; a failure is logged.
void report_state(const ServiceManager& manager, std::string_view state) {
  if (const auto sent = manager.notify(state); !sent) log_warning(codec::describe(sent.error()));
}

codec::Result<void> serve(Filesystem& filesystem, FuseAdapter& adapter, MountGuard& guard,
                          const ServiceManager& manager, const MountOptions& options) {
  guard.watch();
  filesystem.start(adapter.kernel());
  auto served = adapter.serve(service_threads(options));
  // Committing what programs have written can take long.
  report_state(manager, "STOPPING=1");
  adapter.unmount([&guard] { guard.release_readers(); });
  guard.dismiss();
  filesystem.stop();
  adapter.drop_handles();
  if (!served) log_error(codec::describe(served.error()));
  return served;
}

/// Raises the limit of descriptors to the hard limit.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

/// Ignores signals that would end the mount without a user's request: SIGHUP of a closed terminal, SIGUSR2.
void ignore_signals() {
  for (const int signal : {SIGHUP, SIGUSR2})
    std::signal(signal, SIG_IGN);
}

}  // namespace

codec::LibraryVersion fuse_library() {
  return {"libfuse", fuse_pkgversion()};
}

codec::Result<void> mount_and_serve(const MountOptions& options) {
  reserve_stdio_fds();
  ignore_signals();
  // Files get the umask of the calling program, which the kernel passes on, not that of the daemon.
  umask(0);
  tune_malloc();
  raise_descriptor_limit();
  const bool foreground = options.daemon.foreground || options.daemon.debug;
  log_to(LogTarget::standard_error, options.daemon.debug);
  auto is_file = check_mountpoint(options.mountpoint);
  if (!is_file) return codec::Failure(is_file.error());
  frame::StoreFiles files(frame::system_files());
  Filesystem filesystem(files, options);
  if (auto opened = filesystem.open_source(*is_file); !opened) return opened;
  // Resolve the mount point now: in the background the working directory differs, and after mounting, a look-up of it
  // would wait for this daemon's own answer.
  auto mountpoint = real_path(options.mountpoint);
  if (!mountpoint) return codec::Failure(mountpoint.error());
  if (auto checked = check_no_overlap(filesystem.tree(), options.source, *mountpoint); !checked) return checked;
  MountGuard guard;
  if (auto started = guard.start(*mountpoint); !started) log_warning(codec::describe(started.error()));
  ReadyPipe ready;
  if (auto opened = ready.open(); !opened) return opened;
  // A background process is not the main process of a service.
  const ServiceManager manager(foreground ? notify_socket() : std::string());
  FuseAdapter adapter(filesystem, [&ready, &manager] {
    ready.notify_parent();
    report_state(manager, "READY=1");
  });
  if (auto mounted =
          adapter.mount(*mountpoint, mount_arguments(options, filesystem.is_read_only()), options.daemon.debug);
      !mounted)
    return mounted;
  if (const auto mount = mount_at(*mountpoint)) {
    guard.mounted(*mount);
    raise_readahead(*mount);
  }
  if (foreground) return serve(filesystem, adapter, guard, manager, options);

  const pid_t child = fork();
  if (child < 0) {
    const int why = errno;
    adapter.unmount();
    return codec::io_error(why, "go to the background");
  }
  if (child > 0) {
    // The mount belongs to the child now, so this process must not destroy the session or unmount.
    guard.leave();
    const bool serves = ready.wait();
    if (!serves) std::fputs("cframefs: the daemon ended before the mount served; see the system log\n", stderr);
    std::fflush(nullptr);
    _exit(serves ? 0 : 3);
  }
  ready.close_reader();
  log_to(LogTarget::syslog, options.daemon.debug);
  detach_from_terminal();
  const bool served = serve(filesystem, adapter, guard, manager, options).has_value();
  std::_Exit(served ? 0 : 3);
}

}  // namespace cframefs::fs
