#include "fs/fuse/daemon.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/core.h>
#include <malloc.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "codec/base/mutex.h"
#include "frame/io/lock_holders.h"
#include "frame/store/store_files.h"
#include "fs/filesystem.h"
#include "fs/fuse/background.h"
#include "fs/fuse/confinement.h"
#include "fs/fuse/fuse_adapter.h"
#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/mount_guard.h"
#include "fs/fuse/mount_point.h"
#include "fs/fuse/page_fill_process.h"
#include "fs/fuse/passed_files.h"
#include "fs/sandbox/sandbox.h"
#include "fs/sandbox/syscall_filter.h"
#include "fs/util/log.h"
#include "fs/util/log_sinks.h"
#include "fs/util/mount_info.h"
#include "fs/util/service_manager.h"
#include "fs/util/unmount.h"

namespace cframefs::fs {
namespace {

// The kernel's read-ahead, in bytes. The kernel's default of 128 KiB would split reads into many requests.
constexpr std::uint64_t kReadahead = std::uint64_t{1} << 20;

std::string escape_commas(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == ',' || c == '\\') escaped += '\\';
    escaped += c;
  }
  return escaped;
}

/// Returns the source as tables of mounts show it: an absolute path, or an address without secrets.
std::string shown_source(const MountOptions& options, const frame::RemoteSource* remote) {
  if (remote != nullptr) return remote->shown_address();
  if (options.source.starts_with('/')) return options.source;
  return real_path(options.source).value_or(options.source);
}

std::vector<std::string> mount_arguments(const MountOptions& options, const std::string& source, bool read_only) {
  // With "ro" the kernel answers EROFS without a request.
  std::vector<std::string> arguments = {read_only ? "ro" : "rw", "default_permissions", "subtype=cframefs",
                                        "max_read=" + std::to_string(FuseAdapter::kMaxRead)};
  const auto given = [&](const std::string& prefix) {
    return std::any_of(options.daemon.fuse_options.begin(), options.daemon.fuse_options.end(),
                       [&](const std::string& option) { return option.starts_with(prefix); });
  };
  if (!given("fsname=")) arguments.push_back("fsname=" + escape_commas(source));
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

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1000));
}

std::optional<std::chrono::milliseconds> limit_of(double seconds) {
  if (seconds <= 0) return {};
  return std::max(milliseconds(seconds), std::chrono::milliseconds(1));
}

/// Sets where lines go while the mount serves. `foreground`: what holds without the option `log`.
LogSettings log_of(const DaemonOptions& daemon, bool foreground) {
  LogSettings settings;
  settings.level = daemon.log_level.value_or(daemon.debug ? LogLevel::debug : LogLevel::info);
  if (daemon.log.empty()) {
    settings.target = foreground ? LogTarget::standard_error : LogTarget::system_log;
  } else {
    settings.target = daemon.log == "syslog" ? LogTarget::system_log : LogTarget::file;
    if (settings.target == LogTarget::file) settings.file = daemon.log;
  }
  return settings;
}

/// Warnings of a source on a server. Those that come before the log is open go to standard error, and into the log once
/// it is open.
class SourceWarnings {
 public:
  void add(const std::string& text) {
    log_warning(text);
    const codec::MutexLock lock(mutex_);
    if (!is_open_) early_.push_back(text);
  }
  void note_open_log() {
    const codec::MutexLock lock(mutex_);
    is_open_ = true;
    if (log_settings().target != LogTarget::standard_error) {
      for (const std::string& text : early_)
        log_warning(text);
    }
    early_.clear();
  }

 private:
  codec::Mutex mutex_;
  bool is_open_ GUARDED_BY(mutex_) = false;
  std::vector<std::string> early_ GUARDED_BY(mutex_);
};

/// A mount from the time when it is in the kernel's table until its end.
struct Served {
  frame::FileOps& files;
  frame::RemoteSource* remote;  // nullptr: the source is of the system
  Filesystem& filesystem;
  FuseAdapter& adapter;
  MountGuard& guard;
  PageFillProcess& filler;
  const MountOptions& options;
  const std::string& mountpoint;
  const std::optional<MountIdentity>& mount;  // none: the parent process has made it
  const ServiceManager& manager;
  const Sandbox& sandbox;
  SourceWarnings& warnings;
};

/// Unmounts if no program uses the mount and nothing waits to be committed. Returns true if it is unmounted.
bool unmount_unused(const Served& served) {
  if (!served.mount || served.filesystem.is_dirty()) return false;
  // Another mount may cover this one.
  const auto uppermost = mount_at(served.mountpoint);
  if (!uppermost || *uppermost != *served.mount) return false;
  if (served.sandbox.is_on()) return served.guard.unmount(Unmounting::if_unused);
  return umount2(served.mountpoint.c_str(), UMOUNT_NOFOLLOW) == 0 ||
         (errno == EPERM && unmount_by_helper(served.mountpoint, Unmounting::if_unused));
}

/// Returns whether the daemon may have to change the source: root may make a mount with the option ro writable.
bool may_change_source(const Served& served) {
  return !served.filesystem.is_read_only() || (served.options.read_only && ::geteuid() == 0);
}

/// Enters the sandbox, if the mount has one.
codec::Result<void> confine(const Served& served) {
  if (!served.sandbox.is_on()) return {};
  const auto root = served.files.system_descriptor(served.filesystem.tree().root()->handle());
  return enter_sandbox(served.sandbox, served.guard,
                       {root ? root->number : -1, may_change_source(served), may_pass_files(served.filesystem),
                        served.remote, served.options});
}

/// Unmounts when the session has ended.
void unmount(const Served& served) {
  std::function<void()> by_guard;
  if (served.sandbox.is_on() && served.mount) {
    by_guard = [&served] {
      if (!served.guard.unmount(Unmounting::lazy) && mount_at(served.mountpoint) == served.mount)
        log_error(served.mountpoint + ": not unmounted: the guard, which does it for a daemon in its sandbox, is gone");
    };
  }
  served.adapter.unmount([&served] { served.guard.release_readers(); }, by_guard);
}

codec::Result<void> serve(const Served& served) {
  const MountOptions& options = served.options;
  served.warnings.note_open_log();
  if (auto entered = confine(served); !entered) {
    if (options.daemon.sandbox == Sandboxing::strict) {
      log_error(codec::describe(entered.error()));
      unmount(served);
      return entered;
    }
    log_warning("the sandbox is not complete: " + codec::describe(entered.error()));
  }
  served.guard.watch();
  std::function<bool()> is_kernel_writable;
  if (served.mount && (!served.sandbox.is_on() || may_change_source(served)))
    is_kernel_writable = [&served] { return is_writable(*served.mount); };
  const DecodesFrom from = served.remote != nullptr ? DecodesFrom::servers : DecodesFrom::files;
  served.filesystem.start(
      served.adapter.kernel(), std::move(is_kernel_writable), [&served, from] { served.sandbox.enter_decoder(from); },
      served.filler.is_started() ? &served.filler : nullptr);
  std::string ended_by = "by umount or fusermount3";
  const DaemonOptions& daemon = options.daemon;
  auto ended = served.adapter.serve({.threads = service_threads(options),
                                     .idle = {limit_of(daemon.cache_timeout), limit_of(daemon.idle_timeout)},
                                     .unmount_idle =
                                         [&] {
                                           if (unmount_unused(served))
                                             ended_by = fmt::format("idle for {} seconds", daemon.idle_timeout);
                                         },
                                     .on_end =
                                         [&] {
                                           if (served.remote != nullptr) served.remote->stop();
                                         }});
  if (ended && !ended->empty()) ended_by = *ended;
  // Committing what programs have written can take long.
  report_state(served.manager, "STOPPING=1");
  unmount(served);
  served.filesystem.stop();
  served.adapter.drop_handles();
  if (ended) {
    log_info(fmt::format("unmounted {}: {}", served.mountpoint, ended_by));
  } else {
    log_error(codec::describe(ended.error()));
  }
  // Until now the guard has opened files for the log.
  open_log_files_by({});
  frame::examine_locks_by({});
  served.guard.dismiss();
  if (!ended) return codec::Failure(ended.error());
  return {};
}

/// Starts the guard, which a daemon in its sandbox needs. Turns the sandbox off if it cannot be started.
codec::Result<void> start_guard(MountGuard& guard, const MountPoint& mountpoint, const MountOptions& options,
                                Sandbox& sandbox) {
  if (mountpoint.is_descriptor() && !sandbox.is_on()) return {};
  // The guard keeps no standard error.
  auto started = guard.start(mountpoint.path(), guard_duties(options, log_of(options.daemon, false)));
  if (started || options.daemon.sandbox == Sandboxing::strict) return started;
  log_warning(codec::describe(started.error()));
  sandbox = Sandbox();
  return {};
}

/// Starts the process that fills pages, if it is wanted.
void start_filler(PageFillProcess& filler, const MountPoint& mountpoint, const MountOptions& options,
                  const Sandbox& sandbox) {
  const KernelCacheOptions& cache = options.kernel_cache;
  // The kernel's write-back cache is written when the last copy of a mount goes, for which umount(2) would not wait.
  if (!cache.fill_pages || cache.writeback || mountpoint.is_descriptor()) return;
  if (auto started = filler.start(mountpoint.path(), sandbox.is_on() && has_syscall_filter()); !started)
    log_debug("blocks are not filled: " + codec::describe(started.error()));
}

/// Raises the limit of descriptors to the hard limit.
void raise_descriptor_limit() {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  static_cast<void>(::setrlimit(RLIMIT_NOFILE, &limit));
}

/// Ignores signals that would end the process before SignalHandler catches them, and after it: SIGHUP of a closed
/// terminal, SIGUSR2.
void ignore_signals() {
  for (const int signal : {SIGHUP, SIGUSR2})
    std::signal(signal, SIG_IGN);
}

/// Checks that the log can be written. Lines go to standard error until the mount serves.
codec::Result<void> check_log(const MountOptions& options, bool foreground) {
  const LogSettings settings = log_of(options.daemon, foreground);
  if (settings.target == LogTarget::file) {
    if (auto opened = log_to(settings); !opened) return opened;
  }
  return log_to({LogTarget::standard_error, {}, settings.level});
}

/// Tells the user where to find the lines of the background if there is no system log.
void report_missing_log(const LogSettings& settings) {
  if (settings.target != LogTarget::system_log || has_system_log()) return;
  const std::string reserve = reserve_log_file();
  log_warning(reserve.empty() ? "there is no system log (/dev/log): messages are lost; log=FILE keeps them"
                              : "there is no system log (/dev/log): messages go to " + reserve);
}

/// Fails if the log file would be inside the mount: writing a line would wait for the daemon itself.
codec::Result<void> check_log_place(const MountOptions& options, const MountPoint& mountpoint) {
  const std::string& file = options.daemon.log;
  if (!file.starts_with('/') || mountpoint.is_descriptor()) return {};
  const auto place = real_path(file);
  if (!place || !(*place + "/").starts_with(mountpoint.path() + "/")) return {};
  codec::Failure failure = codec::invalid("the log file lies inside the mount point");
  failure.value().path = file;
  return failure;
}

/// Goes to the background and serves there. Returns only if that fails.
codec::Failure serve_in_background(const Served& served, ReadyPipe& ready, const LogSettings& log) {
  report_missing_log(log);
  const pid_t child = fork();
  if (child < 0) {
    const int why = errno;
    served.adapter.unmount();
    return codec::io_error(why, "go to the background");
  }
  if (child > 0) {
    // The mount belongs to the child now, so this process must not destroy the session or unmount.
    served.guard.leave();
    const bool serves = ready.wait();
    if (!serves) std::fputs("cframefs: the daemon ended before the mount served; see the log\n", stderr);
    std::fflush(nullptr);
    _exit(serves ? 0 : 3);
  }
  ready.close_reader();
  static_cast<void>(log_to(log));
  detach_from_terminal();
  std::_Exit(serve(served) ? 0 : 3);
}

/// Serves in the child of continue_in_child().
codec::Result<void> serve_in_child(const Served& served, const LogSettings& log) {
  report_missing_log(log);
  if (auto begun = log_to(log); !begun) return begun;
  detach_from_terminal();
  return serve(served);
}

/// Opens the source if it is an address; nullptr if it is a path.
codec::Result<std::unique_ptr<frame::RemoteSource>> open_remote(const MountOptions& options, SourceWarnings& warnings) {
  if (!frame::is_address(options.source)) return std::unique_ptr<frame::RemoteSource>();
  frame::RemoteOptions remote = options.remote;
  remote.warn = [&warnings](const std::string& text) { warnings.add(text); };
  return frame::RemoteSource::open(options.source, remote);
}

/// Opens the source of the filesystem. Errors name the address if it has one.
codec::Result<void> open_source(Filesystem& filesystem, const frame::RemoteSource* remote, bool root_is_file) {
  auto opened = filesystem.open_source(root_is_file, remote != nullptr ? remote->root() : std::string());
  if (!opened && remote != nullptr) opened.error().path = remote->shown_address();
  return opened;
}

void prepare_process() {
  reserve_stdio_fds();
  ignore_signals();
  // Files get the umask of the calling program, which the kernel passes on, not that of the daemon.
  umask(0);
  tune_malloc();
  raise_descriptor_limit();
}

}  // namespace

codec::LibraryVersion fuse_library() {
  return {"libfuse", fuse_pkgversion()};
}

codec::Result<void> mount_and_serve(const MountOptions& options) {
  prepare_process();
  const bool foreground = options.daemon.foreground || options.daemon.debug;
  if (auto checked = check_log(options, foreground); !checked) return checked;
  MountPoint mountpoint;
  if (auto opened = mountpoint.open(options); !opened) return opened;
  if (mountpoint.is_descriptor() && options.daemon.idle_timeout > 0) {
    return codec::invalid("idle_timeout= needs a mount that cframefs makes, not " + mountpoint.path());
  }
  if (auto checked = check_log_place(options, mountpoint); !checked) return checked;
  auto sandbox = Sandbox::plan(options.daemon.sandbox);
  if (!sandbox) return codec::Failure(sandbox.error());
  ReadyPipe ready;
  if (auto opened = ready.open(); !opened) return opened;
  // The threads that talk to a server do not survive fork(2).
  const bool is_child = !foreground && frame::is_address(options.source);
  if (is_child) {
    if (auto forked = continue_in_child(ready); !forked) return forked;
  }
  // Before the threads of a source on a server: a process that is forked beside them may wait for a lock for ever.
  MountGuard guard;
  if (auto started = start_guard(guard, mountpoint, options, *sandbox); !started) return started;
  PageFillProcess filler;
  start_filler(filler, mountpoint, options, *sandbox);
  SourceWarnings warnings;
  const auto remote = open_remote(options, warnings);
  if (!remote) return codec::Failure(remote.error());
  frame::StoreFiles files(*remote ? (*remote)->files() : frame::system_files());
  Filesystem filesystem(files, options);
  if (auto opened = open_source(filesystem, remote->get(), mountpoint.is_file()); !opened) return opened;
  if (auto checked = mountpoint.check(filesystem.tree(), options); !checked) return checked;
  // A background process is not the main process of a service.
  const ServiceManager manager(foreground ? notify_socket() : std::string());
  const LogSettings log = log_of(options.daemon, foreground);
  const std::string source = shown_source(options, remote->get());
  FuseAdapter adapter(filesystem, [&] {
    log_info(fmt::format("mounted {} on {} ({}{})", source, mountpoint.path(),
                         filesystem.is_read_only() ? "read-only" : "read-write",
                         sandbox->is_on() ? "; sandbox: " + sandbox->description() : ""));
    ready.notify_parent();
    report_state(manager, "READY=1");
  });
  if (auto mounted = adapter.mount(mountpoint.path(), mount_arguments(options, source, filesystem.is_read_only()),
                                   options.daemon.debug);
      !mounted)
    return mounted;
  mountpoint.mounted();
  const auto mount = mountpoint.is_descriptor() ? std::nullopt : mount_at(mountpoint.path());
  if (mount) {
    guard.mounted(*mount);
    filler.mounted(*mount);
    raise_readahead(*mount);
  }
  const Served served{files,   remote->get(),     filesystem, adapter, guard,    filler,
                      options, mountpoint.path(), mount,      manager, *sandbox, warnings};
  if (is_child) return serve_in_child(served, log);
  if (!foreground) return serve_in_background(served, ready, log);
  if (auto begun = log_to(log); !begun) return begun;
  return serve(served);
}

}  // namespace cframefs::fs
