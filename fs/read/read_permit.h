// Limits concurrent reads: a read takes a turn before it fills cells of the cache, so that many reads hold no more
// memory than a few do. The read keeps the turn until its reply is sent, because the reply holds the cells until then.
//
// Cells that are ready, or that another read is loading, need no turn. So a read that waits for its turn has claimed no
// cell yet, and no other read waits for it.
//
// Thread safety: belongs to the thread that serves the request. Ownership: holds a turn; must not outlive the ReadPath.
// Errors: io with EINTR once the read is no longer wanted.
#pragma once

#include <cerrno>
#include <functional>
#include <utility>

#include "codec/base/error.h"
#include "codec/base/turns.h"

namespace cframefs::fs {

class ReadPermit {
 public:
  ReadPermit() = default;
  /// `is_wanted`: called repeatedly while the read waits, and before each cell that it fills.
  explicit ReadPermit(std::function<bool()> is_wanted) : is_wanted_(std::move(is_wanted)) {}
  /// Returns a permit that takes no turn, for a read under a lock that readers with turns may need.
  static ReadPermit without_turn() {
    ReadPermit permit;
    permit.needs_turn_ = false;
    return permit;
  }

  bool is_wanted() const { return is_wanted_ == nullptr || is_wanted_(); }
  /// Returns whether an error means that the read is no longer wanted, and says nothing about the file.
  static bool is_refusal(const codec::Error& error) { return error.kind == codec::ErrorKind::io && error.sys == EINTR; }
  /// Takes a turn, unless the read has one already, of these turns or of others.
  codec::Result<void> enter(codec::Turns& turns) {
    if (!is_wanted()) return codec::io_error(EINTR, "read");
    if (!needs_turn_ || turn_) return {};
    turn_ = turns.take([this] { return is_wanted(); });
    return turn_ ? codec::Result<void>() : codec::io_error(EINTR, "read");
  }

 private:
  std::function<bool()> is_wanted_;
  bool needs_turn_ = true;
  codec::Turns::Turn turn_;
};

}  // namespace cframefs::fs
