#include "fs/fuse/fuse_adapter.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <chrono>
#include <cstdarg>
#include <cstdio>
#include <set>
#include <string_view>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "fs/fuse/daemon.h"
#include "fs/fuse/fuse_requests.h"
#include "fs/fuse/passed_files.h"
#include "fs/fuse/service_loop.h"
#include "fs/fuse/signal_handler.h"
#include "fs/util/log.h"

namespace cframefs::fs {
namespace {

constexpr unsigned kMaxWrite = 1U << 20;
constexpr unsigned kMaxBackground = 64;
// Including the threads whose requests are slow; each costs a stack.
constexpr unsigned kMaxServiceThreads = 128;
// Linux 6.18, the first kernel to drop pages that were read during a direct write.
constexpr std::uint32_t kCoherentProtocol = 45;
constexpr const char* kNoAcls = "this kernel does not support ACLs on FUSE mounts: only file modes decide access";
// Number of times that the kernel is made to write its write-back cache when the mount ends.
constexpr int kSweeps = 3;
constexpr auto kSweepPause = std::chrono::milliseconds(30);

/// Returns whether the kernel may keep names of files: only if it can forget them without waiting.
bool keeps_names(const MountOptions& options, std::uint32_t protocol) {
  constexpr std::uint32_t kForgetsNames = 44;  // Linux 6.16
  return protocol >= kForgetsNames && options.kernel_cache.entry_timeout.value_or(kFileTimeout) > 0;
}

void on_init(void* userdata, fuse_conn_info* connection) {
  // The daemon sends replies from its buffers with one writev; splicing them through a pipe is slower.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_SPLICE_READ | FUSE_CAP_SPLICE_WRITE | FUSE_CAP_SPLICE_MOVE);
  // With AUTO_INVAL_DATA the kernel would request attributes at every read, even of cached pages. Instead the daemon
  // drops pages of an older state at open, at stat, and when the watcher reports a change.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_AUTO_INVAL_DATA);
  // With ASYNC_DIO the kernel does not drop pages that were read during an asynchronous direct write, so they would
  // stay old. Without it, such a write is answered before io_submit(2) returns.
  connection->want &= ~static_cast<unsigned>(FUSE_CAP_ASYNC_DIO);
  // With READDIRPLUS a listing looks up each of its entries. If names are valid for no time, the kernel asks for each
  // that it uses once more.
  const MountOptions& options = static_cast<FuseAdapter*>(userdata)->filesystem().options();
  if (!keeps_names(options, connection->proto_minor))
    connection->want &= ~static_cast<unsigned>(FUSE_CAP_READDIRPLUS | FUSE_CAP_READDIRPLUS_AUTO);
  // The source's modes and ACLs decide access; the umask applies only if there is no default ACL.
  constexpr auto kAccess = static_cast<unsigned>(FUSE_CAP_POSIX_ACL | FUSE_CAP_DONT_MASK);
  if ((connection->capable & FUSE_CAP_POSIX_ACL) == 0) log_warning(kNoAcls);
  connection->want |= connection->capable & kAccess;
  // The ACLs of the source would grant other rights than those shown.
  if (options.shown.are_set()) connection->want &= ~static_cast<unsigned>(FUSE_CAP_POSIX_ACL);
  if (options.kernel_cache.writeback && (connection->capable & FUSE_CAP_WRITEBACK_CACHE) != 0)
    connection->want |= FUSE_CAP_WRITEBACK_CACHE;
  connection->max_read = FuseAdapter::kMaxRead;
  // The kernel uses the lower of this and of read_ahead_kb of the mount, which the daemon raises if permitted.
  connection->max_readahead = FuseAdapter::kMaxReadahead;
  connection->max_write = kMaxWrite;
  connection->max_background = kMaxBackground;
  connection->congestion_threshold = kMaxBackground * 3 / 4;
  connection->time_gran = 1;
  static_cast<FuseAdapter*>(userdata)->ready(connection->proto_minor);
}

fuse_lowlevel_ops operations() {
  fuse_lowlevel_ops ops{};
  ops.init = on_init;
  register_read_ops(ops);
  register_write_ops(ops);
  return ops;
}

// libfuse reports the reason of a failed mount only to its log; kept for the daemon's error message.
std::string& last_message() {
  static std::string message;
  return message;
}

__attribute__((format(printf, 2, 0))) void keep_message(fuse_log_level /*level*/, const char* format,
                                                        va_list arguments) {
  char line[1024];
  std::vsnprintf(line, sizeof line, format, arguments);
  // One message comes in several calls; the last of them ends the line.
  static bool is_open = false;
  if (!is_open) last_message().clear();
  last_message() += line;
  is_open = !last_message().ends_with('\n');
  if (is_open) return;
  std::string& text = last_message();
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  if (text.starts_with("fuse: ")) text.erase(0, 6);
  log_debug(text);
}

/// Captures the first line of standard error, to which fusermount3 (the helper of ordinary users) writes its errors.
/// REQUIRES: nothing else runs in the process while the object lives.
class StderrCapture {
 public:
  StderrCapture() : kept_(memfd_create("complaints", MFD_CLOEXEC)), real_(dup(STDERR_FILENO)) {
    if (kept_ >= 0 && real_ >= 0) dup2(kept_, STDERR_FILENO);
  }
  ~StderrCapture() {
    if (kept_ >= 0 && real_ >= 0) {
      dup2(real_, STDERR_FILENO);
      keep_first_line();
    }
    if (kept_ >= 0) close(kept_);
    if (real_ >= 0) close(real_);
  }
  StderrCapture(const StderrCapture&) = delete;
  StderrCapture& operator=(const StderrCapture&) = delete;

 private:
  void keep_first_line() const {
    std::array<char, 512> text{};
    const ssize_t length = pread(kept_, text.data(), text.size(), 0);
    if (length <= 0) return;
    const std::string_view said(text.data(), static_cast<std::size_t>(length));
    last_message() = said.substr(0, said.find('\n'));
  }

  int kept_;
  int real_;
};

codec::Failure mount_failure(const std::string& mountpoint) {
  std::string reason = "cannot mount";
  if (!last_message().empty()) reason += ": " + last_message();
  codec::Error error{codec::ErrorKind::io, EIO, reason};
  error.path = mountpoint;
  return codec::Failure(std::move(error));
}

}  // namespace

FuseAdapter::FuseAdapter(Filesystem& filesystem, std::function<void()> ready)
    : filesystem_(filesystem),
      ready_(std::move(ready)),
      listings_(std::max(1U, std::thread::hardware_concurrency() / 2)) {}

FuseAdapter::~FuseAdapter() {
  if (session_ != nullptr) fuse_session_destroy(session_);
}

codec::Result<void> FuseAdapter::mount(const std::string& mountpoint, const std::vector<std::string>& arguments,
                                       bool debug) {
  std::vector<std::string> words = {"cframefs"};
  for (const std::string& argument : arguments)
    words.push_back("-o" + argument);
  if (debug) words.emplace_back("-d");
  std::vector<char*> pointers;
  pointers.reserve(words.size());
  for (std::string& word : words)
    pointers.push_back(word.data());
  fuse_args args = FUSE_ARGS_INIT(static_cast<int>(pointers.size()), pointers.data());
  if (!debug) fuse_set_log_func(keep_message);
  const fuse_lowlevel_ops ops = operations();
  session_ = fuse_session_new(&args, &ops, sizeof ops, this);
  fuse_opt_free_args(&args);
  if (session_ == nullptr) return mount_failure(mountpoint);
  notifications_.begin(session_);
  int mounted = 0;
  {
    const StderrCapture complaints;
    mounted = fuse_session_mount(session_, mountpoint.c_str());
  }
  if (mounted != 0) return mount_failure(mountpoint);
  backing_.begin(fuse_session_fd(session_));
  if (may_pass_files(filesystem_)) init_.want_backing();
  return use_own_device_calls();
}

codec::Result<void> FuseAdapter::use_own_device_calls() {
  fuse_custom_io calls{};
  calls.read = [](int device, void* into, std::size_t length, void* adapter) {
    const ssize_t got = ::read(device, into, length);
    if (got > 0) static_cast<FuseAdapter*>(adapter)->init_.note_request(into, static_cast<std::size_t>(got));
    return got;
  };
  calls.writev = [](int device, iovec* parts, int count, void* adapter) {
    return static_cast<FuseAdapter*>(adapter)->init_.send(device, parts, count);
  };
  const int done = fuse_session_custom_io(session_, &calls, fuse_session_fd(session_));
  if (done == 0) return {};
  fuse_session_unmount(session_);
  return codec::io_error(-done, "mount");
}

codec::Result<std::string> FuseAdapter::serve(const ServiceOptions& service) {
  using Request = SignalHandler::Request;
  // The option -s serves debugging: exactly one thread.
  ServiceLoop loop(
      session_, service.threads, service.threads == 1 ? 1 : kMaxServiceThreads,
      [this] { filesystem_.read_path().pool().relieve(); }, service.idle,
      [](const IdleSchedule::Due& due) {
        if (due.release) SignalHandler::request(Request::release_memory);
        if (due.unmount) SignalHandler::request(Request::unmount_idle);
      },
      service.on_end);
  SignalHandler signals(
      session_, {.flush_dirty_pages = [this] { flush_page_cache(); },
                 .interrupt = [&loop] { loop.interrupt(); },
                 .drop_caches = [this] { drop_caches(); },
                 .report = [this] { log_info("statistics: " + filesystem_.files().control().statistics_line()); },
                 .release_memory = [this] { filesystem_.release_memory(); },
                 .unmount_idle = service.unmount_idle});
  if (auto started = signals.start(); !started) return codec::Failure(started.error());
  auto served = loop.run();
  std::string ended_by = signals.finish();
  if (const auto rest = refusals_.rest()) log_info(*rest);
  if (!served) return codec::Failure(served.error());
  return ended_by;
}

void FuseAdapter::drop_caches() {
  reopen_log();
  filesystem_.drop_caches();
  log_info("SIGHUP: caches dropped");
}

void FuseAdapter::ready(std::uint32_t protocol) {
  // writeback=on asks for small writes through the kernel's cache, which direct writes would bypass.
  writes_directly_ = protocol >= kCoherentProtocol && !filesystem_.options().kernel_cache.writeback;
  ready_();
}

void FuseAdapter::flush_page_cache() {
  const bool writeback = filesystem_.options().kernel_cache.writeback;
  refuses_cached_writes_ = writeback;
  for (int sweep = 0; sweep < (writeback ? kSweeps : 1); ++sweep) {
    // A write that began before the last sweep puts its bytes into the kernel's pages a moment later.
    if (sweep > 0) std::this_thread::sleep_for(kSweepPause);
    std::set<NodeId> written;
    files_.each([&written](const FileHandle& handle) {
      if (handle.writable) written.insert(handle.node->id);
    });
    // The kernel writes a dirty page, and waits for the reply, before it drops the page.
    for (const NodeId node : written)
      notifications_.invalidate_inode(node);
  }
}

void FuseAdapter::drop_handles() {
  files_.clear();
  directories_.clear();
}

namespace {

bool is_connected(fuse_session* session) {
  pollfd device{fuse_session_fd(session), 0, 0};
  return ::poll(&device, 1, 0) != 1 || (device.revents & POLLERR) == 0;
}

/// Ends the connection. Puts a pipe without a reader in the place of the device, so that libfuse takes the mount for
/// one that has ended: it then neither unmounts nor starts fusermount3.
void disconnect(fuse_session* session) {
  std::array<int, 2> ends = {-1, -1};
  if (::pipe2(ends.data(), O_CLOEXEC) != 0) return;
  ::close(ends[0]);
  ::dup3(ends[1], fuse_session_fd(session), O_CLOEXEC);
  ::close(ends[1]);
}

}  // namespace

void FuseAdapter::unmount(const std::function<void()>& release_readers, const std::function<void()>& by_guard) {
  // A notification that waits in the kernel for a page locked by a reader never ends, and neither does the reader,
  // because no thread answers any more. Unmounting alone unblocks neither of them.
  if (!notifications_.end()) {
    release_readers();
    notifications_.end();
  }
  if (by_guard && is_connected(session_)) {
    disconnect(session_);
    by_guard();
  }
  backing_.end();
  fuse_session_unmount(session_);
}

}  // namespace cframefs::fs
