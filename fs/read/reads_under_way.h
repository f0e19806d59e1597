// The reads of one file for which the kernel has locked pages of the file. Dropping such pages waits until the read is
// answered. They need not be dropped at once if the read checks the file once more before it is answered.
//
//   begin() ──▶ open ──close()──▶ closed ──▶ answered, and the mark is destroyed
//                ▲                  │
//                └─────reopen()─────┘ the file has changed: it is read again
//
// Open: the read will check the file before it answers, and read again if the file has changed. So bytes of an older
// version than the current one never get into these pages. Closed: the read is checking the file, or has checked it;
// the answer follows at once.
//
// Two reads of one page cannot both hold its lock: the older one has been answered early (its caller was interrupted)
// and does not count any more.
//
// Thread safety: internally synchronised; a leaf in the lock order. Ownership: a Mark keeps its ReadsUnderWay alive.
// Units: bytes.
#pragma once

#include <cstdint>
#include <list>
#include <memory>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::fs {

class ReadsUnderWay {
 private:
  struct Read {
    std::uint64_t begin = 0;  // of a page
    std::uint64_t end = 0;
    bool open = true;
    bool holds_pages = true;
  };

 public:
  /// Marks one read from begin() until its answer has been sent.
  class Mark {
   public:
    Mark() = default;
    Mark(Mark&& other) noexcept : reads_(std::move(other.reads_)), read_(other.read_) {}
    Mark& operator=(Mark&& other) noexcept {
      std::swap(reads_, other.reads_);
      std::swap(read_, other.read_);
      return *this;
    }
    ~Mark();
    /// Records that the read begins its last check of the file.
    void close() { set_open(false); }
    void reopen() { set_open(true); }

   private:
    friend class ReadsUnderWay;
    void set_open(bool open);
    std::shared_ptr<ReadsUnderWay> reads_;  // null: no read is marked
    std::list<Read>::iterator read_;
  };

  /// Marks a read. REQUIRES: the kernel has locked the pages of the range, which is not empty, until the read is
  /// answered.
  static Mark begin(std::shared_ptr<ReadsUnderWay> reads, std::uint64_t at, std::uint64_t length,
                    std::uint64_t page_size);

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  /// Returns the ranges between the pages of open reads, up to the largest file size: one range if there is no such
  /// read.
  std::vector<Range> gaps() const;
  /// Returns whether `gaps` is the whole file.
  static bool is_all(const std::vector<Range>& gaps);

 private:
  mutable codec::Mutex mutex_;
  std::list<Read> reads_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
