// The size of a file that the kernel was told, and whether an answer to a read may end before it.
//
// The kernel takes a short answer for the end of the file and lowers its size, but not if the answer crosses a
// notification about the inode or another short answer. It then shows zeros up to the size that it had. So a read that
// finds a file that has become smaller fails the first time. The kernel reads such a page once more on its own before a
// program sees the error, and the NotificationGate keeps that read apart from notifications. A read behind the end of
// the file is sent if the kernel does not know the end, or on a truncation in the mount. While the size is in doubt,
// and shortly after, only the read of one page may find nothing: readahead would be the other short answer.
//
//   agreed ──another program makes the file smaller, or a read ends before the told size──▶ doubted
//   doubted ──a short read fails──▶ asked ──a short read that began since, without a notification──▶ agreed
//                                   asked ──another short read──▶ asked
//
// Thread safety: internally synchronised; its mutex comes before the gate's in the lock order. Ownership: plain values.
// Units: bytes.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <optional>

#include "codec/base/mutex.h"
#include "fs/kernel/notification_gate.h"

namespace cframefs::fs {

class ToldSize {
 public:
  /// Called before a look at the size of the file. Returns a number for tell().
  std::uint64_t begin_look() const { return truncations_.load(std::memory_order_acquire); }
  /// Records the size that an answer tells, unless a truncation in the mount has ended since begin_look() has returned
  /// `look`: the kernel does not take such an answer. Returns true if the answer before told another size.
  bool tell(std::uint64_t size, std::uint64_t look) EXCLUDES(mutex_);
  /// Records that another program has changed the file.
  void changed_behind() EXCLUDES(mutex_);

  /// Handles that can write are open from the first call to the second one: the kernel knows what they do to the size,
  /// and any answer may be short, also one to a read that began before the second call.
  void begin_writing() EXCLUDES(mutex_);
  void end_writing() EXCLUDES(mutex_);

  /// A truncation in the mount, as long as it lasts. The kernel knows it without an answer that tells the size, and any
  /// answer may be short meanwhile. Not safe for several threads. Refers to the object that it is made with.
  class Truncation {
   public:
    explicit Truncation(ToldSize& told) : told_(told) { told_.begin_writing(); }
    ~Truncation() { told_.end_writing(); }
    Truncation(const Truncation&) = delete;
    Truncation& operator=(const Truncation&) = delete;
    /// Records that the file has the size now.
    void succeeded(std::uint64_t size) { told_.set(size); }

   private:
    ToldSize& told_;
  };

  /// What had happened when a read began.
  struct Begin {
    std::uint64_t failed = 0;  // reads
    std::uint64_t left = 0;    // handles that could write, and truncations
  };
  /// Called before a read that the kernel takes into its page cache. Returns what Read needs.
  Begin begin_read() const { return {failed_.load(std::memory_order_acquire), left_.load(std::memory_order_acquire)}; }
  struct Read {
    std::uint64_t at = 0;
    std::uint64_t size = 0;   // of the answer, which is shorter than the request
    Begin begun;              // what begin_read() has returned
    std::uint64_t inode = 0;  // for the gate
    bool is_page = false;     // the request is for one page
  };
  /// Returns whether the answer to a read that has found the end of the file may be short. If not, the read fails;
  /// the call then takes NotificationGate::kLongestSettling at most.
  bool may_be_short(const Read& read, NotificationGate& gate) EXCLUDES(mutex_);

 private:
  using Clock = std::chrono::steady_clock;
  enum class Doubt : std::uint8_t { agreed, doubted, asked };

  void set(std::uint64_t size) EXCLUDES(mutex_);
  void note_change() REQUIRES(mutex_);
  void agree(std::uint64_t size) REQUIRES(mutex_);
  /// Returns whether the read is the kernel's second one after another has failed.
  bool is_second(const Read& read) const REQUIRES(mutex_);

  mutable codec::Mutex mutex_;
  std::uint64_t size_ GUARDED_BY(mutex_) = 0;
  Doubt doubt_ GUARDED_BY(mutex_) = Doubt::agreed;
  unsigned writers_ GUARDED_BY(mutex_) = 0;
  bool is_lowered_ GUARDED_BY(mutex_) = false;                   // a smaller size was told since the kernel agreed
  bool is_foreign_ GUARDED_BY(mutex_) = false;                   // another program has changed the file since
  std::uint64_t events_ GUARDED_BY(mutex_) = 0;                  // of the gate, when a read last failed
  std::optional<std::uint64_t> page_behind_ GUARDED_BY(mutex_);  // the read that last failed was for this page
  Clock::time_point settled_ GUARDED_BY(mutex_);                 // until then answers may be on their way
  std::atomic<std::uint64_t> failed_{0};                         // reads that have failed; changed under the mutex
  std::atomic<std::uint64_t> left_{0};                           // writers that have left; changed under the mutex
  std::atomic<std::uint64_t> truncations_{0};                    // in the mount, ended; changed under the mutex
};

}  // namespace cframefs::fs
