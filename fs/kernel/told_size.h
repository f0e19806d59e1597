// The size of a file that the kernel was told, and whether an answer to a read may end before it.
//
// The kernel takes a short answer for the end of the file and lowers its size, but not if the answer crosses a
// notification about the inode or another short answer. It then shows zeros up to the size that it had. So a read that
// finds a file that has become smaller fails the first time. The kernel reads such a page once more on its own before a
// program sees the error, and the NotificationGate keeps that read apart from notifications. A read behind the end of
// the file, which the kernel sends only if it does not know the end, always fails: it would be the other short answer.
//
//   agreed ──a smaller size is told, or a read ends before the told size──▶ doubted
//   doubted ──a short read fails──▶ asked ──a short read that began since, without a notification──▶ agreed
//                                   asked ──another short read──▶ asked
//
// Thread safety: internally synchronised; its mutex comes before the gate's in the lock order. Ownership: plain values.
// Units: bytes.
#pragma once

#include <atomic>
#include <cstdint>

#include "codec/base/mutex.h"
#include "fs/kernel/notification_gate.h"

namespace cframefs::fs {

class ToldSize {
 public:
  /// Records the size that an answer tells. Returns true if the one before told another.
  bool tell(std::uint64_t size);
  /// Records that the kernel itself has changed the size, for a truncation that has succeeded.
  void set(std::uint64_t size);

  /// Called before a read that the kernel takes into its page cache. Returns a number for Read.
  std::uint64_t begin_read() const { return failed_.load(std::memory_order_acquire); }
  struct Read {
    std::uint64_t at = 0;
    std::uint64_t size = 0;   // of the answer, which is shorter than the request
    std::uint64_t begun = 0;  // what begin_read() has returned
    std::uint64_t inode = 0;  // for the gate
  };
  /// Returns whether the answer to a read that has found the end of the file may be short. If not, the read fails;
  /// the call then takes NotificationGate::kLongestSettling at most.
  bool may_be_short(const Read& read, NotificationGate& gate) EXCLUDES(mutex_);

 private:
  enum class Doubt : std::uint8_t { agreed, doubted, asked };

  mutable codec::Mutex mutex_;
  std::uint64_t size_ GUARDED_BY(mutex_) = 0;
  Doubt doubt_ GUARDED_BY(mutex_) = Doubt::agreed;
  std::uint64_t events_ GUARDED_BY(mutex_) = 0;  // of the gate, when a read last failed
  std::atomic<std::uint64_t> failed_{0};         // reads that have failed; changed under the mutex
};

}  // namespace cframefs::fs
