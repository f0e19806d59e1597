// The lock that a writer of a frame holds during a commit, so that writers exclude each other.
//
// A writer takes two locks:
//   side-car  flock(2) on FILE.b2lock, the lock of the reference library. As soon as the writer holds it, it increments
//             the counter at byte 8, so that readers of that library reload the frame. Used if the side-car exists or
//             the environment requests locking (BLOSC_LOCKING, as in the reference library); else no side-car is
//             created, because most directories hold frames that no program locks.
//   frame     flock(2) on the frame itself, by which our own programs exclude each other without a side-car.
// On filesystems without locks a writer takes neither.
//
// Any program that can read the frame can hold a flock(2) on it, and a mount holds a shared one while the frame is open
// for writing. Therefore shared locks of other programs do not block a commit. A writer that meets one takes a third
// lock, so that such writers exclude each other: the `guard`, a file beside the frame that only its owner can open and
// that exists only while it is locked. A compaction, which replaces the file of the frame, takes the guard in any case.
// One outside the mount requests `alone`, and fails while a mount has the frame open for writing.
//
// Lock order: side-car, frame, guard; a process holds the locks of one frame at a time.
// Thread safety: one thread per object. Ownership: releases on destruction; borrows the file operations.
// Errors: io; EBUSY if another program holds a lock for longer than `patience`.
#pragma once

#include <chrono>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// Returns the path of the side-car of a contiguous frame. That of a sparse frame is kSparseSideCar in its directory.
std::string side_car_path(const std::string& path);
inline constexpr const char* kSparseSideCar = ".b2lock";
/// Returns the path of the guard of a frame. The guard exists only while a writer holds it.
std::string guard_path(const std::string& path);

/// How acquire() takes the locks.
struct LockManner {
  std::chrono::milliseconds patience{5000};
  bool alone = false;  // fail if other programs hold shared locks on the frame
  /// After `patience`, continue without the lock on the frame if the frame has not changed since, and without the lock
  /// on the side-car if only programs hold it that cannot write it.
  bool past_frame = false;
  bool stays_shared = false;  // on release the lock on the frame becomes a shared one
  /// Take the guard first. flock(2) drops a shared lock before it refuses an exclusive one, so that for an instant
  /// another writer can take the frame for its own: of two that mean to replace the file, one is refused at once.
  bool guards = false;
};

class AdvisoryLock {
 public:
  /// The files of the locks: names beneath `dir`, empty for a frame without them, and the open file of the frame,
  /// which must stay open.
  struct Target {
    OpenFile dir;
    std::string side_car;
    std::string guard;
    OpenFile frame;
    bool lacks_side_car = false;  // the caller knows that there is none: it is not looked for
  };

  AdvisoryLock() = default;
  static Result<AdvisoryLock> acquire(FileOps& files, const Target& target, const LockManner& manner);
  /// Takes the shared lock of a program that has the frame open for writing, where there are locks. Fails if another
  /// writer holds its lock for longer than `patience`. That writer may have replaced the file, so the caller examines
  /// the name after this call.
  static Result<void> share(FileOps& files, OpenFile frame, std::chrono::milliseconds patience);
  AdvisoryLock(AdvisoryLock&& other) noexcept
      : files_(other.files_),
        target_(std::move(other.target_)),
        side_car_(std::move(other.side_car_)),
        guard_(std::move(other.guard_)),
        frame_(std::exchange(other.frame_, OpenFile{})),
        is_exclusive_(other.is_exclusive_),
        stays_shared_(other.stays_shared_) {}
  AdvisoryLock& operator=(AdvisoryLock&&) = delete;
  ~AdvisoryLock();

  /// Returns true if the lock on the frame is exclusive, or the filesystem has no locks.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Result<void> take_frame(const LockManner& manner, Deadline until);
  enum class Guarded : std::uint8_t { by_this, by_another, by_none };  // by_none: the guard may not be created
  Result<Guarded> take_guard();
  Result<Guarded> lock_guard(OpenFile file);

  FileOps* files_ = nullptr;
  Target target_;
  Descriptor side_car_;  // closing it releases the lock
  Descriptor guard_;     // closing it releases the lock
  OpenFile frame_;       // not open: not locked
  bool is_exclusive_ = true;
  bool stays_shared_ = false;
};

}  // namespace cframefs::frame
