// What a read needs before it fills cells of the cache: a turn among all reads, so that many of them at once hold no
// more memory than a few do. It keeps the turn until its reply is sent, because the reply holds the cells until then.
//
// What is in the cache, or being decoded for another read, is read without a turn. So a read that waits in line has
// claimed no cell yet, and no other one waits for it.
//
// Thread safety: belongs to the thread that serves the request. Ownership: holds a turn; must not outlive the route.
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
  /// `is_wanted`: asked every now and then while the read waits, and before each cell that it fills.
  explicit ReadPermit(std::function<bool()> is_wanted) : is_wanted_(std::move(is_wanted)) {}
  /// Of a read under a lock that readers with turns may need: it takes none.
  static ReadPermit without_turn() {
    ReadPermit permit;
    permit.needs_turn_ = false;
    return permit;
  }

  bool is_wanted() const { return is_wanted_ == nullptr || is_wanted_(); }
  /// Whether an error says that a read is no longer wanted, and nothing of the file.
  static bool is_refusal(const codec::Error& error) { return error.kind == codec::ErrorKind::io && error.sys == EINTR; }
  /// Takes a turn unless the read has one already, of these turns or of others.
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
