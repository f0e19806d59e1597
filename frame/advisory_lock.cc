#include "frame/advisory_lock.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>

namespace cframefs::frame {

namespace {

using codec::Failure;
using codec::io_error;

constexpr std::chrono::milliseconds kPause(5);
constexpr FileOffset kCounterAt{8};

bool locking_asked_for() {
  const char* asked = std::getenv("BLOSC_LOCKING");
  return asked != nullptr && *asked != '\0' && std::string_view(asked) != "0";
}

/// Filesystems that know no locks say so in several ways.
bool knows_no_locks(const Error& error) {
  return error.sys == ENOSYS || error.sys == EOPNOTSUPP || error.sys == ENOLCK || error.sys == EINVAL;
}

/// False: there are no locks here.
Result<bool> lock_exclusive(FileOps& files, int fd, std::chrono::steady_clock::time_point until) {
  while (true) {
    const auto held = files.try_lock(fd, LOCK_EX);
    if (!held) {
      if (knows_no_locks(held.error())) return false;
      return Failure(held.error());
    }
    if (*held) return true;
    if (std::chrono::steady_clock::now() >= until) return io_error(EBUSY, "lock held by another program");
    std::this_thread::sleep_for(kPause);
  }
}

/// The counter is in the order of this machine: the side-car is never carried to another.
Result<void> raise_counter(FileOps& files, int fd) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  const auto got = files.pread(fd, bytes, kCounterAt);
  if (!got) return Failure(got.error());
  std::uint64_t counter = 0;
  if (*got == bytes.size()) std::memcpy(&counter, bytes.data(), sizeof counter);
  ++counter;
  std::memcpy(bytes.data(), &counter, sizeof counter);
  return files.pwrite(fd, bytes, kCounterAt);
}

Result<Descriptor> open_side_car(FileOps& files, int dir, const std::string& path) {
  if (path.empty()) return Descriptor();
  const auto fd = files.open_at(dir, path, O_RDWR | O_NONBLOCK | O_NOCTTY);
  if (fd) return Descriptor(files, *fd);
  // A frame whose own name is nearly as long as names can be has no side-car, and can get none.
  if (fd.error().sys == ENAMETOOLONG) return Descriptor();
  if (fd.error().sys != ENOENT) return Failure(fd.error());
  if (!locking_asked_for()) return Descriptor();
  const auto made = files.create_at(dir, path, O_RDWR | O_NONBLOCK | O_NOCTTY, 0666);
  if (!made) return Failure(made.error());
  return Descriptor(files, *made);
}

}  // namespace

std::string side_car_path(const std::string& path, bool folder) {
  return path + (folder ? "/.b2lock" : ".b2lock");
}

Result<AdvisoryLock> AdvisoryLock::acquire(FileOps& files, int dir, const std::string& side_car, int frame,
                                           std::chrono::milliseconds patience) {
  const auto until = std::chrono::steady_clock::now() + patience;
  auto opened = open_side_car(files, dir, side_car);
  if (!opened) return Failure(opened.error());
  AdvisoryLock lock;
  lock.files_ = &files;
  lock.side_car_ = std::move(*opened);
  if (lock.side_car_.is_open()) {
    const auto held = lock_exclusive(files, lock.side_car_.fd(), until);
    if (!held) return Failure(held.error());
    if (auto raised = raise_counter(files, lock.side_car_.fd()); !raised) return Failure(raised.error());
  }
  const auto held = lock_exclusive(files, frame, until);
  if (!held) return Failure(held.error());
  if (*held) lock.frame_ = frame;
  return lock;
}

AdvisoryLock::~AdvisoryLock() {
  if (frame_ >= 0) static_cast<void>(files_->try_lock(frame_, LOCK_UN));
}

}  // namespace cframefs::frame
