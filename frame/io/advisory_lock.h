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
// Any program that can read the frame can hold a flock(2) on it. Therefore shared locks of other programs do not block
// a commit. A writer that meets one takes a third lock, so that such writers exclude each other: the `guard`, a file
// beside the frame that only its owner can open and that exists only while it is locked.
//
// A mount that has a frame open for writing holds a fourth lock until it closes the frame: the `open lock`, a shared
// lock of fcntl(2) on the byte kOpenLockAt (F_OFD_SETLK). It does not block a commit either. A writer that replaces
// the file of a frame asks for the open locks of other programs while it holds the exclusive lock on the frame
// (is_alone()). The open lock is no flock(2), because flock(2) drops a shared lock before it refuses an exclusive one:
// in that instant another writer would take the frame for its own, and would replace the file.
//
// Lock order: open lock, side-car, frame, guard; a process holds the locks of one frame at a time.
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
/// The byte of the open lock, which no file reaches.
inline constexpr FileOffset kOpenLockAt{std::uint64_t{1} << 62};
/// Returns the path of the guard of a frame. The guard exists only while a writer holds it.
std::string guard_path(const std::string& path);

/// How acquire() takes the locks.
struct LockManner {
  std::chrono::milliseconds patience{5000};
  bool alone = false;  // fail if other programs hold shared locks on the frame, or have it open for writing
  /// After `patience`, continue without the lock on the frame if the frame has not changed since, and without the lock
  /// on the side-car if only programs hold it that cannot write it.
  bool past_frame = false;
  bool stays_open = false;  // this program holds the open lock, and keeps it
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
  /// Takes the open lock, where there are locks, and waits until no other writer commits. Fails if another writer holds
  /// its lock for longer than `patience`. That writer may have replaced the file, so the caller examines the name after
  /// this call.
  static Result<void> open_frame(FileOps& files, OpenFile frame, std::chrono::milliseconds patience);
  /// Takes the open lock of a file that no other program commits to.
  static void open_new_frame(FileOps& files, OpenFile frame);
  /// Releases the open lock.
  static void close_frame(FileOps& files, OpenFile frame);
  AdvisoryLock(AdvisoryLock&& other) noexcept
      : files_(other.files_),
        target_(std::move(other.target_)),
        side_car_(std::move(other.side_car_)),
        guard_(std::move(other.guard_)),
        frame_(std::exchange(other.frame_, OpenFile{})),
        is_exclusive_(other.is_exclusive_),
        stays_open_(other.stays_open_) {}
  AdvisoryLock& operator=(AdvisoryLock&&) = delete;
  ~AdvisoryLock();

  /// Returns true if the lock on the frame is exclusive, or the filesystem has no locks.
  bool is_exclusive() const { return is_exclusive_; }
  /// Returns true if the lock on the frame is exclusive and no other program has the frame open for writing, so that
  /// its file may be replaced. Where there are no locks: true.
  Result<bool> is_alone() const;

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
  bool stays_open_ = false;
};

}  // namespace cframefs::frame
