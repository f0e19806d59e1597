// The lock that writers of one frame hold against each other while they commit.
//
// Two locks are taken. One is the reference library's: flock(2) on the side-car FILE.b2lock, whose counter at byte 8 is
// raised as soon as the lock is held, so that its readers look again. It is honoured where the side-car exists or the
// environment asks for locking (BLOSC_LOCKING, as in the reference library); else none is made, for most folders hold
// frames that nobody locks. The other is a flock(2) on the frame itself, which keeps our own programs apart where there
// is no side-car. Where the filesystem knows no locks there is none.
//
// Lock order: side-car, then frame; a process holds the locks of one frame at a time.
// Thread safety: one thread per object. Ownership: releases on destruction; borrows the file operations.
// Errors: io; EBUSY if somebody else holds a lock for longer than `patience`.
#pragma once

#include <chrono>
#include <string>

#include "frame/file_ops.h"

namespace cframefs::frame {

/// Where the side-car of a frame is.
std::string side_car_path(const std::string& path, bool folder);

class AdvisoryLock {
 public:
  AdvisoryLock() = default;
  /// `frame`: the open frame, which must stay open. `side_car`: beneath `dir`; empty for a frame that has no name.
  static Result<AdvisoryLock> acquire(FileOps& files, int dir, const std::string& side_car, int frame,
                                      std::chrono::milliseconds patience);
  AdvisoryLock(AdvisoryLock&& other) noexcept
      : files_(other.files_), side_car_(std::move(other.side_car_)), frame_(std::exchange(other.frame_, -1)) {}
  AdvisoryLock& operator=(AdvisoryLock&&) = delete;
  ~AdvisoryLock();

 private:
  FileOps* files_ = nullptr;
  Descriptor side_car_;  // closing it releases the lock
  int frame_ = -1;       // -1: not locked
};

}  // namespace cframefs::frame
