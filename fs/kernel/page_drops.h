// Counts the drops of a file's pages: those that a change of PageCacheState has requested, and those that the kernel
// has carried out.
//
// A drop that began before a request does not carry that request out, so the caller reads requested() before it
// notifies the kernel and reports that number afterwards.
//
// Thread safety: internally synchronised. Units: drops.
#pragma once

#include <atomic>
#include <cstdint>

namespace cframefs::fs {

class PageDrops {
 public:
  void request() { ++requested_; }
  std::uint64_t requested() const { return requested_; }
  /// Records that the first `drops` drops have been carried out.
  void carried_out(std::uint64_t drops) {
    std::uint64_t known = carried_out_;
    while (known < drops && !carried_out_.compare_exchange_weak(known, drops)) {
    }
  }
  /// Returns whether pages may be older than the version, because a drop is not carried out yet.
  bool are_pending() const { return carried_out_ != requested_; }

 private:
  std::atomic<std::uint64_t> requested_{0};
  std::atomic<std::uint64_t> carried_out_{0};
};

}  // namespace cframefs::fs
