// A bounded stream of bytes from one thread to another.
//
// Thread safety: one thread writes, one reads. Memory: `most` bytes, or one piece if that is longer. Errors: none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/mutex.h"

namespace cframefs::tools {

class PieceQueue {
 public:
  explicit PieceQueue(std::size_t most) : most_(most) {}

  /// Adds a piece; waits for room. Returns false if the queue is closed.
  bool push(codec::ByteView piece) {
    std::vector<std::uint8_t> copy(piece.begin(), piece.end());
    codec::MutexLock lock(mutex_);
    while (!closed_ && !pieces_.empty() && bytes_ + copy.size() > most_)
      changed_.wait(mutex_);
    if (closed_) return false;
    bytes_ += copy.size();
    pieces_.push_back(std::move(copy));
    changed_.notify_all();
    return true;
  }

  /// Returns the next piece; waits for one. Returns an empty piece if the queue is closed and has no other.
  std::vector<std::uint8_t> pop() {
    codec::MutexLock lock(mutex_);
    while (!closed_ && pieces_.empty())
      changed_.wait(mutex_);
    if (pieces_.empty()) return {};
    std::vector<std::uint8_t> piece = std::move(pieces_.front());
    pieces_.pop_front();
    bytes_ -= piece.size();
    changed_.notify_all();
    return piece;
  }

  /// Ends the stream: the reader gets what is there, the writer adds no more.
  void close() {
    codec::MutexLock lock(mutex_);
    closed_ = true;
    changed_.notify_all();
  }

 private:
  const std::size_t most_;
  codec::Mutex mutex_;
  codec::CondVar changed_;
  std::deque<std::vector<std::uint8_t>> pieces_ GUARDED_BY(mutex_);
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  bool closed_ GUARDED_BY(mutex_) = false;
};

}  // namespace cframefs::tools
