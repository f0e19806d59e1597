// The reads of one file that the kernel waits for, with the pages of the file locked: to drop those pages waits until
// the read is answered. They need not be dropped at once, if the read looks at the file once more before it is
// answered.
//
//   begin() ──▶ open ──close()──▶ closed ──▶ answered, and the mark is destroyed
//                ▲                  │
//                └─────reopen()─────┘ the file has changed: it is read again
//
// Open: before the answer the file is looked at, and read again if it has changed. So bytes of an older state than the
// file has now never get into these pages. Closed: it is being looked at, or has been; the answer follows at once.
//
// Two reads of one page cannot both hold its lock: the older one has been answered early (its caller was interrupted),
// and counts no longer.
//
// Thread safety: internally synchronised; a leaf in the lock order. Ownership: a mark keeps what it was made of alive.
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
    std::uint64_t begin = 0;  // of whole pages
    std::uint64_t end = 0;
    bool open = true;
    bool holds_pages = true;
  };

 public:
  static constexpr std::uint64_t kPage = 4096;

  /// Of one read, until its answer has been sent.
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
    /// From here on the file is looked at for the last time.
    void close() { set_open(false); }
    void reopen() { set_open(true); }

   private:
    friend class ReadsUnderWay;
    void set_open(bool open);
    std::shared_ptr<ReadsUnderWay> reads_;  // null: no read is marked
    std::list<Read>::iterator read_;
  };

  /// REQUIRES: the kernel holds the pages of the range, which is not empty, until the read is answered.
  static Mark begin(std::shared_ptr<ReadsUnderWay> reads, std::uint64_t at, std::uint64_t length);

  struct Range {
    std::uint64_t begin = 0;
    std::uint64_t end = 0;
    bool operator==(const Range&) const = default;
  };
  /// What lies between the pages of open reads, as far as a file can reach. All of it in one if there is none.
  std::vector<Range> gaps() const;
  /// Whether that is all of it.
  static bool is_all(const std::vector<Range>& gaps);

 private:
  mutable codec::Mutex mutex_;
  std::list<Read> reads_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
