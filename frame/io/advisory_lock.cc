#include "frame/io/advisory_lock.h"

#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <string_view>
#include <thread>

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include "frame/io/byte_source.h"
#include "frame/io/lock_holders.h"
#include "frame/io/replacement_file.h"
#include "frame/io/system_version.h"

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

/// Returns true for the errors of filesystems without locks, which differ.
bool knows_no_locks(const Error& error) {
  return error.sys == ENOSYS || error.sys == EOPNOTSUPP || error.sys == ENOLCK || error.sys == EINVAL;
}

codec::Failure held_by_another() {
  return io_error(EBUSY, "lock held by another program");
}

enum class Tried : std::uint8_t { held, refused, no_locks };

Result<Tried> outcome_of(const Result<bool>& held) {
  if (held) return *held ? Tried::held : Tried::refused;
  if (knows_no_locks(held.error())) return Tried::no_locks;
  return Failure(held.error());
}

Result<Tried> try_lock(FileOps& files, OpenFile file, int operation) {
  return outcome_of(files.try_lock(file, operation));
}

/// Returns false if another program holds an exclusive lock of fcntl(2) on the file.
bool try_open_lock(FileOps& files, OpenFile frame) {
  return outcome_of(files.try_byte_lock(frame, kOpenLockAt, ByteLock::share)).value_or(Tried::no_locks) !=
         Tried::refused;
}

/// Releases a lock on the frame. On NFS this unlocks each byte of the file, so the open lock is taken again.
void unlock(FileOps& files, OpenFile frame, bool stays_open) {
  static_cast<void>(files.try_lock(frame, LOCK_UN));
  if (stays_open) static_cast<void>(try_open_lock(files, frame));
}

/// Returns true if another program has the frame open for writing.
Result<bool> is_open_elsewhere(FileOps& files, OpenFile frame) {
  const auto open_lock = outcome_of(files.try_byte_lock(frame, kOpenLockAt, ByteLock::examine));
  if (!open_lock) return Failure(open_lock.error());
  return *open_lock == Tried::refused;
}

/// Calls `take` until it returns true; EBUSY if it has not by `until`.
template <class TryOnce>
Result<void> retry_until(std::chrono::steady_clock::time_point until, const TryOnce& try_once) {
  while (true) {
    const Result<bool> taken = try_once();
    if (!taken) return Failure(taken.error());
    if (*taken) return {};
    if (std::chrono::steady_clock::now() >= until) return held_by_another();
    std::this_thread::sleep_for(kPause);
  }
}

/// Returns true if the frame's owner or group may write the file at the side-car's name. Otherwise the file may be
/// another user's file that was renamed to this name, and a mount that runs as root must not write it.
bool is_theirs(const struct stat& side_car, const struct stat& frame) {
  if (!S_ISREG(side_car.st_mode)) return false;
  if (side_car.st_uid == frame.st_uid || (side_car.st_mode & S_IWOTH) != 0) return true;
  return side_car.st_gid == frame.st_gid && (side_car.st_mode & S_IWGRP) != 0;
}

/// Increments the counter of the side-car. It is in the byte order of this machine, because side-cars are not moved to
/// other machines.
Result<void> raise_counter(FileOps& files, OpenFile file) {
  std::array<std::uint8_t, sizeof(std::uint64_t)> bytes{};
  const auto got = files.pread(file, bytes, kCounterAt);
  if (!got) return Failure(got.error());
  std::uint64_t counter = 0;
  if (*got == bytes.size()) std::memcpy(&counter, bytes.data(), sizeof counter);
  ++counter;
  std::memcpy(bytes.data(), &counter, sizeof counter);
  return files.pwrite(file, bytes, kCounterAt);
}

/// Creates the side-car with the mode and owner of the frame: users that may write the frame may lock it.
Result<Descriptor> make_side_car(FileOps& files, const AdvisoryLock::Target& target) {
  const auto frame = files.status(target.frame);
  if (!frame) return Failure(frame.error());
  const int flags = O_RDWR | O_NONBLOCK | O_NOCTTY;
  const auto fd = files.create_at(target.dir, target.side_car, flags | O_EXCL, frame->st_mode & 0666U);
  if (!fd && fd.error().sys == EEXIST) {
    const auto other = files.open_at(target.dir, target.side_car, flags);
    return other ? Result<Descriptor>(Descriptor(files, *other)) : Failure(other.error());
  }
  if (!fd) return Failure(fd.error());
  Descriptor made(files, *fd);
  if (::geteuid() == 0) static_cast<void>(files.change_owner(*fd, frame->st_uid, frame->st_gid));
  return made;
}

Result<Descriptor> open_side_car(FileOps& files, const AdvisoryLock::Target& target) {
  if (target.side_car.empty()) return Descriptor();
  if (!target.lacks_side_car) {
    const auto fd = files.open_at(target.dir, target.side_car, O_RDWR | O_NONBLOCK | O_NOCTTY);
    if (fd) return Descriptor(files, *fd);
    // A frame whose name is nearly of the maximum length cannot have a side-car.
    if (fd.error().sys == ENAMETOOLONG) return Descriptor();
    if (fd.error().sys != ENOENT) return Failure(fd.error());
  }
  if (!locking_asked_for()) return Descriptor();
  return make_side_car(files, target);
}

}  // namespace

std::string guard_path(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  const std::size_t begin = slash == std::string::npos ? 0 : slash + 1;
  // The digest (FNV-1a) bounds the length of the guard's name. All programs must compute the same digest.
  std::uint64_t digest = 0xcbf29ce484222325;
  for (const char letter : std::string_view(path).substr(begin))
    digest = (digest ^ static_cast<unsigned char>(letter)) * 0x100000001b3;
  return path.substr(0, begin) + kTemporaryPrefix + std::to_string(digest) + ".lock";
}

std::string side_car_path(const std::string& path) {
  return path + ".b2lock";
}

Result<AdvisoryLock> AdvisoryLock::acquire(FileOps& files, const Target& target, const LockManner& manner) {
  const auto until = std::chrono::steady_clock::now() + manner.patience;
  auto opened = open_side_car(files, target);
  if (!opened) return Failure(opened.error());
  AdvisoryLock lock;
  lock.files_ = &files;
  lock.target_ = target;
  lock.stays_open_ = manner.stays_open;
  lock.side_car_ = std::move(*opened);
  bool past_side_car = false;
  if (lock.side_car_.is_open()) {
    const auto held = retry_until(until, [&]() -> Result<bool> {
      const auto tried = try_lock(files, lock.side_car_.handle(), LOCK_EX);
      if (!tried) return Failure(tried.error());
      return *tried != Tried::refused;
    });
    if (!held) {
      // Last resort: a lock of a program that only reads must not cause data loss.
      const auto file = files.status(lock.side_car_.handle());
      if (!manner.past_frame || held.error().sys != EBUSY || !file || !only_readers_lock(*file))
        return Failure(held.error());
      past_side_car = true;
    }
    const auto side_car = files.status(lock.side_car_.handle());
    const auto frame = files.status(target.frame);
    if (side_car && frame && is_theirs(*side_car, *frame)) {
      if (auto raised = raise_counter(files, lock.side_car_.handle()); !raised) return Failure(raised.error());
    }
  }
  if (auto held = lock.take_frame(manner, until); !held) return Failure(held.error());
  lock.is_exclusive_ = lock.is_exclusive_ && !past_side_car;
  return lock;
}

Result<void> AdvisoryLock::open_frame(FileOps& files, OpenFile frame, std::chrono::milliseconds patience) {
  // A writer that holds its lock now may have asked for open locks before this one was taken.
  const auto open = [&]() -> Result<bool> {
    if (!try_open_lock(files, frame)) return false;
    const Tried tried = try_lock(files, frame, LOCK_SH).value_or(Tried::no_locks);
    if (tried == Tried::held) unlock(files, frame, true);
    return tried != Tried::refused;
  };
  if (*open()) return {};
  if (patience.count() == 0) return held_by_another();
  // Once only: this looks through the locks of all programs.
  const auto file = files.status(frame);
  if (file && only_readers_lock(*file)) return {};
  return retry_until(std::chrono::steady_clock::now() + patience, open);
}

void AdvisoryLock::open_new_frame(FileOps& files, OpenFile frame) {
  static_cast<void>(try_open_lock(files, frame));
}

void AdvisoryLock::close_frame(FileOps& files, OpenFile frame) {
  static_cast<void>(files.try_byte_lock(frame, kOpenLockAt, ByteLock::release));
}

Result<bool> AdvisoryLock::is_alone() const {
  if (!is_exclusive_) return false;
  const auto is_open = is_open_elsewhere(*files_, target_.frame);
  if (!is_open) return Failure(is_open.error());
  return !*is_open;
}

Result<void> AdvisoryLock::take_frame(const LockManner& manner, Deadline until) {
  bool is_used = false;  // by a program that only keeps out writers that must be alone
  const auto try_once = [&]() -> Result<bool> {
    const auto exclusive = try_lock(*files_, target_.frame, LOCK_EX);
    if (!exclusive) return Failure(exclusive.error());
    is_exclusive_ = true;
    if (*exclusive == Tried::held) frame_ = target_.frame;
    if (*exclusive != Tried::refused) {
      if (!manner.alone) return true;
      const auto is_open = is_open_elsewhere(*files_, target_.frame);
      if (!is_open) return Failure(is_open.error());
      is_used = *is_open;
      // Meanwhile the program that has it open may commit.
      if (is_used && frame_.is_open()) unlock(*files_, std::exchange(frame_, OpenFile{}), manner.stays_open);
      return !is_used;
    }
    // A failed lock conversion releases the previous lock, so take the shared lock again in any case.
    const auto shared = try_lock(*files_, target_.frame, LOCK_SH);
    if (!shared) return Failure(shared.error());
    if (*shared != Tried::held) return false;
    frame_ = target_.frame;
    is_exclusive_ = false;
    is_used = manner.alone;
    if (manner.alone) return false;
    const auto guarded = take_guard();
    if (!guarded) return Failure(guarded.error());
    return *guarded == Guarded::by_this;
  };
  std::optional<FileVersion> before;
  if (manner.past_frame) {
    if (const auto status = files_->status(target_.frame)) before = version_of(*status);
  }
  auto held = retry_until(until, try_once);
  if (!held && is_used) {
    return io_error(EBUSY, "open for writing in a mount, or locked by another program");
  }
  if (held || held.error().sys != EBUSY || manner.alone || !manner.past_frame) return held;
  // Last resort: a lock of a program that only reads must not cause data loss. A writer would have changed the file.
  const auto after = files_->status(target_.frame);
  if (!before || !after || !(*before == version_of(*after))) return held;
  is_exclusive_ = false;
  const auto guarded = take_guard();
  if (guarded && *guarded != Guarded::by_this) return held;
  return {};
}

Result<AdvisoryLock::Guarded> AdvisoryLock::take_guard() {
  // A file without a name has one writer.
  if (target_.guard.empty() || guard_.is_open()) return Guarded::by_this;
  constexpr int kFlags = O_RDWR | O_NONBLOCK | O_NOCTTY;
  auto fd = files_->create_at(target_.dir, target_.guard, kFlags | O_EXCL, 0600);
  const bool is_new = fd.has_value();
  if (!fd && fd.error().sys == EEXIST) fd = files_->create_at(target_.dir, target_.guard, kFlags, 0600);
  if (!fd) {
    if (fd.error().sys == EACCES || fd.error().sys == EPERM || fd.error().sys == EROFS) return Guarded::by_none;
    return Failure(fd.error());
  }
  Descriptor made(*files_, *fd);
  auto guarded = lock_guard(made.handle());
  if (guarded && *guarded == Guarded::by_this) guard_ = std::move(made);
  if (!guarded && is_new) static_cast<void>(files_->remove_at(target_.dir, target_.guard, false));
  return guarded;
}

Result<AdvisoryLock::Guarded> AdvisoryLock::lock_guard(OpenFile file) {
  const auto held = try_lock(*files_, file, LOCK_EX);
  if (!held) return Failure(held.error());
  if (*held == Tried::refused) return Guarded::by_another;
  // If the previous holder has removed the file since, this lock excludes no other writer.
  const auto ours = files_->status(file);
  if (!ours) return Failure(ours.error());
  const auto named = files_->status_at(target_.dir, target_.guard);
  if (!named && named.error().sys != ENOENT) return Failure(named.error());
  const bool is_named = named && ours->st_ino == named->st_ino && ours->st_dev == named->st_dev;
  return is_named ? Guarded::by_this : Guarded::by_another;
}

AdvisoryLock::~AdvisoryLock() {
  if (guard_.is_open()) static_cast<void>(files_->remove_at(target_.dir, target_.guard, false));
  if (frame_.is_open()) unlock(*files_, frame_, stays_open_);
}

}  // namespace cframefs::frame
