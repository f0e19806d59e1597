// What has been read of a file so far, as checksums: tells whether all of it is still there when another program has
// set the file's times, which may have been a write of other bytes in place as well.
//
// Reading stored bytes again costs less than decoding them again. So it is done for files of large chunks, of which few
// pieces are read; of those with many small ones the record soon ends, and so does what it costs.
//
// Thread safety: internally synchronised; is_unchanged() reads the file without the lock. Ownership: shared by the
// source that watch() returns and by what is known of the file. Units: bytes. Errors: a read that failed ends the
// record.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

class ReadRecord : public std::enable_shared_from_this<ReadRecord> {
 public:
  /// The same source, whose reads are recorded from now on. What was recorded before of another one is forgotten.
  std::unique_ptr<ByteSource> watch(std::unique_ptr<ByteSource> source);
  /// Whether the file has, in all places that were read, the bytes that were read there. False if that is not known:
  /// too many were read, or some are being read.
  bool is_unchanged() const;

 private:
  class Source;
  struct Checksums {
    std::uint32_t crc = 0;
    std::uint32_t adler = 1;
    bool operator==(const Checksums&) const = default;
    void add(ByteView bytes);
  };
  struct Piece {
    FileOffset at;
    std::uint64_t length = 0;
    Checksums sums;
  };

  /// A read is about to begin. False: it need not be recorded.
  bool begin();
  /// Nothing is recorded any more.
  bool has_ended() const { return ended_.load(std::memory_order_relaxed); }
  /// A read that begin() knows of has ended. None: it failed.
  void end(FileOffset at, std::optional<ByteView> bytes);
  static std::optional<Checksums> checksums_of(const ByteSource& source, FileOffset at, std::uint64_t length);

  mutable codec::Mutex mutex_;
  std::shared_ptr<const ByteSource> source_ GUARDED_BY(mutex_);
  std::vector<Piece> pieces_ GUARDED_BY(mutex_);
  unsigned reading_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> ended_{false};  // not everything is recorded
};

}  // namespace cframefs::frame
