#include "fs/tree/watcher.h"

#include <climits>
#include <cstring>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <linux/fs.h>
#include <linux/magic.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "fs/tree/name_mapping.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

constexpr std::uint32_t kContent = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr std::uint32_t kEntries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;
constexpr std::size_t kMostEventBytes = sizeof(inotify_event) + NAME_MAX + 1;

void add_one(int counter) {
  const std::uint64_t one = 1;
  static_cast<void>(::write(counter, &one, sizeof one));
}

/// Returns whether the directory may fold case. An event need not spell a name as the directory does.
bool may_fold_case(int fd) {
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int directory = ::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return true;
  int flags = 0;
  const bool folds = ::ioctl(directory, FS_IOC_GETFLAGS, &flags) == 0 && (flags & FS_CASEFOLD_FL) != 0;
  ::close(directory);
  return folds;
}

/// Returns whether the system reports each change of names in the directory: no other machine changes what the
/// filesystem stores, and names are not encrypted, which a key that some program adds changes unreported.
bool sees_all_changes(int fd) {
  struct statx status {};
  if (::statx(fd, "", AT_EMPTY_PATH, 0, &status) != 0 || (status.stx_attributes & STATX_ATTR_ENCRYPTED) != 0)
    return false;
  struct statfs filesystem {};
  if (::fstatfs(fd, &filesystem) != 0) return false;
  switch (static_cast<std::uint32_t>(filesystem.f_type)) {
    case EXT4_SUPER_MAGIC:  // ext2 and ext3, too
    case XFS_SUPER_MAGIC:
    case BTRFS_SUPER_MAGIC:
    case TMPFS_MAGIC:
    case OVERLAYFS_SUPER_MAGIC:  // its layers must not change beneath it
      return !may_fold_case(fd);
    default:
      return false;
  }
}

}  // namespace

Watcher::Watcher(Reporter reporter)
    : reporter_(std::move(reporter)),
      inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      wake_(eventfd(0, EFD_CLOEXEC)),
      taken_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      buffer_(kBufferBytes) {}

Watcher::~Watcher() {
  stop();
  for (const int descriptor : {inotify_, wake_, taken_}) {
    if (descriptor >= 0) close(descriptor);
  }
}

void Watcher::start() {
  if (is_usable()) thread_ = std::thread([this] { run(); });
}

void Watcher::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  add_one(wake_);
  thread_.join();
}

bool Watcher::watch(int fd, std::uint64_t directory) {
  if (!is_usable()) return false;
  {
    codec::MutexLock lock(mutex_);
    if (watches_.contains(directory)) return true;
    // By descriptor: a path could lead to another directory than the one that the caller has checked.
    const std::string path = "/proc/self/fd/" + std::to_string(fd);
    const int watch = inotify_add_watch(inotify_, path.c_str(), kContent | kEntries);
    if (watch < 0) return false;
    const auto [other, is_new] = directories_.try_emplace(watch, directory);
    if (!is_new) {
      // An older node of the same directory, which no name leads to any more.
      names_.forget(other->second);
      watches_.erase(other->second);
      other->second = directory;
    }
    watches_[directory] = watch;
  }
  if (sees_all_changes(fd)) names_.follow(directory);
  return true;
}

void Watcher::forget(std::uint64_t directory) {
  names_.forget(directory);
  codec::MutexLock lock(mutex_);
  auto found = watches_.find(directory);
  if (found == watches_.end()) return;
  inotify_rm_watch(inotify_, found->second);
  directories_.erase(found->second);
  watches_.erase(found);
}

void Watcher::run() {
  Clock::time_point next{};  // when the next batch may be reported
  while (!stopping_) {
    wait_for_changes();
    pause_until(next);
    if (stopping_) break;
    next = Clock::now() + kBatchInterval;
    catch_up();
    if (try_in_memory([this] { report(); })) continue;
    // Some changes may have been reported already, which is harmless.
    until_there_is_memory([this] { report_loss(); });
  }
}

void Watcher::wait_for_changes() {
  {
    codec::MutexLock lock(mutex_);
    is_waiting_ = changes_.empty() && !has_lost_changes_;
    if (!is_waiting_) return;
  }
  pollfd waits[3] = {{inotify_, POLLIN, 0}, {wake_, POLLIN, 0}, {taken_, POLLIN, 0}};
  static_cast<void>(poll(waits, 3, -1));
  std::uint64_t count = 0;
  static_cast<void>(::read(taken_, &count, sizeof count));
  codec::MutexLock lock(mutex_);
  is_waiting_ = false;
}

void Watcher::pause_until(Clock::time_point time) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  if (left.count() <= 0) return;
  pollfd wake{wake_, POLLIN, 0};
  static_cast<void>(poll(&wake, 1, static_cast<int>(left.count())));
}

void Watcher::report() {
  Changes changed;
  bool lost = false;
  {
    codec::MutexLock lock(mutex_);
    changed.swap(changes_);
    std::swap(lost, has_lost_changes_);
  }
  std::optional<std::uint64_t> last;
  for (const auto& [place, entry] : changed) {
    const bool is_repeated = std::exchange(last, place.first) == place.first;
    if (entry) ++name_changes_;
    reporter_(Change{place.first, place.second, entry, false, is_repeated});
  }
  if (lost) report_loss();
}

void Watcher::catch_up() {
  codec::MutexLock order(order_);
  for (;;) {
    const ssize_t got = ::read(inotify_, buffer_.data(), buffer_.size());
    if (got <= 0) return;
    const auto length = static_cast<std::size_t>(got);
    if (!try_in_memory([&]() NO_THREAD_SAFETY_ANALYSIS { take_events(length); })) lose_track();
    // With room for one more event, the read has emptied the queue.
    if (length + kMostEventBytes <= buffer_.size()) return;
  }
}

bool Watcher::lacks(std::uint64_t directory, const std::string& name) {
  if (!names_.is_listed(directory)) return false;
  catch_up();
  return names_.lacks(directory, name);
}

void Watcher::take_events(std::size_t length) {
  codec::MutexLock lock(mutex_);
  for (std::size_t at = 0; at + sizeof(inotify_event) <= length;) {
    inotify_event event{};
    std::memcpy(&event, buffer_.data() + at, sizeof event);
    take_event(at);
    at += sizeof event + event.len;
  }
  if (std::exchange(is_waiting_, false)) add_one(taken_);
}

void Watcher::take_event(std::size_t at) {
  inotify_event event{};
  std::memcpy(&event, buffer_.data() + at, sizeof event);
  if ((event.mask & IN_Q_OVERFLOW) != 0) {
    has_lost_changes_ = true;
    names_.lose_track();
  }
  auto directory = directories_.find(event.wd);
  if (directory == directories_.end()) return;
  if ((event.mask & IN_IGNORED) != 0) {
    names_.forget(directory->second);
    watches_.erase(directory->second);
    directories_.erase(directory);
    return;
  }
  std::string name(event.len > 0 ? buffer_.data() + at + sizeof event : "");
  if (NameMapper::is_temporary(name)) {
    // No name of the mount: only the directory has changed. The mount's own commits and creations make many.
    changes_.try_emplace({directory->second, ""}, false);
    return;
  }
  if ((event.mask & (IN_CREATE | IN_MOVED_TO)) != 0) names_.appeared(directory->second, name);
  if ((event.mask & (IN_DELETE | IN_MOVED_FROM)) != 0) names_.vanished(directory->second);
  bool& entry = changes_[{directory->second, name}];
  entry = entry || (event.mask & kEntries) != 0;
}

void Watcher::lose_track() {
  names_.lose_track();
  codec::MutexLock lock(mutex_);
  has_lost_changes_ = true;
  if (std::exchange(is_waiting_, false)) add_one(taken_);
}

}  // namespace cframefs::fs
