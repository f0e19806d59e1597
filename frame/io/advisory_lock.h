// The lock that writers of one frame hold against each other while they commit.
//
// Two locks are taken. One is the reference library's: flock(2) on the side-car FILE.b2lock, whose counter at byte 8 is
// raised as soon as the lock is held, so that its readers look again. It is honoured where the side-car exists or the
// environment asks for locking (BLOSC_LOCKING, as in the reference library); else none is made, for most directories
// hold frames that no program locks. The other is a flock(2) on the frame itself, which keeps our own programs apart
// where there is no side-car. Where the filesystem knows no locks there is none.
//
// Any program that can read the frame can hold a flock(2) on it, and a mount holds a shared one for as long as it has
// the frame open for writing. So shared locks of others do not keep a commit from going on. Writers that meet one take
// a third lock, so that they keep each other out: a file beside the frame (`guard`) that only its owner can open and
// that is there only meanwhile. What makes a new file of the frame (compaction by a program that is not the mount) asks
// to be `alone`, and is refused while a mount has the frame open for writing.
//
// Lock order: side-car, frame, guard; a process holds the locks of one frame at a time.
// Thread safety: one thread per object. Ownership: releases on destruction; borrows the file operations.
// Errors: io; EBUSY if another program holds a lock for longer than `patience`.
#pragma once

#include <chrono>
#include <string>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

/// The side-car of a contiguous frame, beside it; that of a sparse one lies in the frame's directory.
std::string side_car_path(const std::string& path);
inline constexpr const char* kSparseSideCar = ".b2lock";
/// Where the guard of a frame is, while there is one.
std::string guard_path(const std::string& path);

/// How a lock is taken.
struct LockManner {
  std::chrono::milliseconds patience{5000};
  bool alone = false;  // not beside shared locks of other programs
  /// At the end of the patience without the frame's own lock, and without the side-car's if only programs hold it that
  /// cannot write it.
  bool past_frame = false;
  bool stays_shared = false;  // the frame's own lock becomes a shared one in the end
};

class AdvisoryLock {
 public:
  /// What is locked: names beneath `dir`, empty for a frame that has none, and the open frame, which must stay open.
  struct Target {
    int dir = -1;
    std::string side_car;
    std::string guard;
    int frame = -1;
  };

  AdvisoryLock() = default;
  static Result<AdvisoryLock> acquire(FileOps& files, const Target& target, const LockManner& manner);
  AdvisoryLock(AdvisoryLock&& other) noexcept
      : files_(other.files_),
        target_(std::move(other.target_)),
        side_car_(std::move(other.side_car_)),
        guard_(std::move(other.guard_)),
        frame_(std::exchange(other.frame_, -1)),
        is_exclusive_(other.is_exclusive_),
        stays_shared_(other.stays_shared_) {}
  AdvisoryLock& operator=(AdvisoryLock&&) = delete;
  ~AdvisoryLock();

  /// Whether the frame's own lock keeps all other programs out, or the filesystem knows no locks.
  bool is_exclusive() const { return is_exclusive_; }

 private:
  using Deadline = std::chrono::steady_clock::time_point;

  Result<void> take_frame(const LockManner& manner, Deadline until);
  Result<bool> take_guard();

  FileOps* files_ = nullptr;
  Target target_;
  Descriptor side_car_;  // closing it releases the lock
  Descriptor guard_;     // the same
  int frame_ = -1;       // -1: not locked
  bool is_exclusive_ = true;
  bool stays_shared_ = false;
};

}  // namespace cframefs::frame
