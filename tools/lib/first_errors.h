// The errors of a file's chunks with the lowest chunk numbers, in a bounded list.
//
// Threads find errors in any order. Which errors are listed depends only on the errors, not on the order of add().
//
// Thread safety: one thread at a time. Memory: at most `limit` errors.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <tuple>
#include <utility>
#include <vector>

#include "codec/base/error.h"

namespace cframefs::tools {

class FirstErrors {
 public:
  explicit FirstErrors(std::size_t limit) : limit_(limit) {}

  /// Adds an error; errors without a chunk number come first. Returns false if the list is full of earlier ones.
  bool add(codec::Error error) {
    kinds_ |= bit(error.kind);
    ++count_;
    if (heap_.size() == limit_) {
      if (limit_ == 0 || !is_before(error, heap_.front())) return false;
      std::pop_heap(heap_.begin(), heap_.end(), is_before);
      heap_.pop_back();
    }
    heap_.push_back(std::move(error));
    std::push_heap(heap_.begin(), heap_.end(), is_before);
    return true;
  }

  /// Counts further errors of the given kind that are not before those listed.
  void add_unlisted(codec::ErrorKind kind, std::uint64_t count) {
    if (count > 0) kinds_ |= bit(kind);
    count_ += count;
  }

  /// Returns the number of errors added.
  std::uint64_t count() const { return count_; }
  /// Returns true if an error of this kind was added, listed or not.
  bool has(codec::ErrorKind kind) const { return (kinds_ & bit(kind)) != 0; }

  /// Moves the listed errors out, sorted.
  std::vector<codec::Error> release() {
    std::sort_heap(heap_.begin(), heap_.end(), is_before);
    return std::exchange(heap_, {});
  }

 private:
  static bool is_before(const codec::Error& a, const codec::Error& b) {
    return std::tie(a.chunk, a.reason) < std::tie(b.chunk, b.reason);
  }
  static unsigned bit(codec::ErrorKind kind) { return 1U << static_cast<unsigned>(kind); }

  std::size_t limit_;
  std::vector<codec::Error> heap_;  // the last of them is in front
  std::uint64_t count_ = 0;
  unsigned kinds_ = 0;
};

}  // namespace cframefs::tools
