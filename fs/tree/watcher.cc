#include "fs/tree/watcher.h"

#include <cstring>
#include <map>
#include <utility>

#include <poll.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <unistd.h>

#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

constexpr std::uint32_t kContent = IN_MODIFY | IN_ATTRIB | IN_CLOSE_WRITE;
constexpr std::uint32_t kEntries = IN_CREATE | IN_DELETE | IN_MOVED_FROM | IN_MOVED_TO;
constexpr std::size_t kBufferBytes = std::size_t{64} << 10;

}  // namespace

Watcher::Watcher(Reporter reporter)
    : reporter_(std::move(reporter)),
      inotify_(inotify_init1(IN_CLOEXEC | IN_NONBLOCK)),
      wake_(eventfd(0, EFD_CLOEXEC)) {}

Watcher::~Watcher() {
  stop();
  if (inotify_ >= 0) close(inotify_);
  if (wake_ >= 0) close(wake_);
}

void Watcher::start() {
  if (inotify_ < 0 || wake_ < 0) return;
  // Allocated here, where the caller handles std::bad_alloc; in the thread it would end the program.
  thread_ = std::thread([this, buffer = std::vector<char>(kBufferBytes)]() mutable { run(buffer); });
}

void Watcher::stop() {
  if (!thread_.joinable()) return;
  stopping_ = true;
  const std::uint64_t one = 1;
  static_cast<void>(::write(wake_, &one, sizeof one));
  thread_.join();
}

bool Watcher::watch(int fd, std::uint64_t directory) {
  if (inotify_ < 0 || wake_ < 0) return false;
  codec::MutexLock lock(mutex_);
  if (watches_.contains(directory)) return true;
  // By descriptor: a path could lead to another directory than the one that the caller has checked.
  const std::string path = "/proc/self/fd/" + std::to_string(fd);
  const int watch = inotify_add_watch(inotify_, path.c_str(), kContent | kEntries);
  if (watch < 0) return false;
  directories_[watch] = directory;
  watches_[directory] = watch;
  return true;
}

void Watcher::forget(std::uint64_t directory) {
  codec::MutexLock lock(mutex_);
  auto found = watches_.find(directory);
  if (found == watches_.end()) return;
  inotify_rm_watch(inotify_, found->second);
  directories_.erase(found->second);
  watches_.erase(found);
}

void Watcher::run(std::vector<char>& buffer) {
  Clock::time_point next{};  // when the next batch may be read
  while (!stopping_) {
    pollfd waits[2] = {{inotify_, POLLIN, 0}, {wake_, POLLIN, 0}};
    if (poll(waits, 2, -1) < 0) continue;
    pause_until(next);
    if (stopping_) break;
    next = Clock::now() + kBatchInterval;
    const ssize_t got = ::read(inotify_, buffer.data(), buffer.size());
    if (got <= 0 || try_in_memory([&] { report(buffer.data(), static_cast<std::size_t>(got)); })) continue;
    // Some changes may have been reported already, which is harmless.
    until_there_is_memory([this] { reporter_(Change{0, "", false, true}); });
  }
}

void Watcher::pause_until(Clock::time_point time) const {
  const auto left = std::chrono::ceil<std::chrono::milliseconds>(time - Clock::now());
  if (left.count() <= 0) return;
  pollfd wake{wake_, POLLIN, 0};
  static_cast<void>(poll(&wake, 1, static_cast<int>(left.count())));
}

void Watcher::report(const char* events, std::size_t length) {
  // A program that writes a file causes one event for each write: they are reported once for each batch.
  std::map<std::pair<std::uint64_t, std::string>, bool> changed;
  bool lost = false;
  for (std::size_t at = 0; at + sizeof(inotify_event) <= length;) {
    inotify_event event{};
    std::memcpy(&event, events + at, sizeof event);
    const char* name = events + at + sizeof event;
    at += sizeof event + event.len;
    if ((event.mask & IN_Q_OVERFLOW) != 0) lost = true;
    codec::MutexLock lock(mutex_);
    auto directory = directories_.find(event.wd);
    if (directory == directories_.end()) continue;
    if ((event.mask & IN_IGNORED) != 0) {
      watches_.erase(directory->second);
      directories_.erase(directory);
      continue;
    }
    bool& entry = changed[{directory->second, event.len > 0 ? std::string(name) : std::string()}];
    entry = entry || (event.mask & kEntries) != 0;
  }
  for (const auto& [place, entry] : changed)
    reporter_(Change{place.first, place.second, entry, false});
  if (lost) reporter_(Change{0, "", false, true});
}

}  // namespace cframefs::fs
