// Records checksums of all bytes read from a file. If the file's timestamps change, the record shows whether those
// bytes changed, or whether another program only set the times.
//
// Reading stored bytes again costs less than decoding them again. The record pays for files with large chunks, of which
// few ranges are read. For files with many small chunks the record ends after 64 ranges, and with it the cost.
//
// Thread safety: internally synchronised; is_unchanged() reads the file without the lock. Ownership: shared by the
// source that watch() returns and by the cached state of the file. Units: bytes. Errors: a failed read ends the record.
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
  /// Returns a source that reads from `source` and records all reads. Discards the record of an earlier source.
  std::unique_ptr<ByteSource> watch(std::unique_ptr<ByteSource> source);
  /// Reads all recorded ranges again and returns true if they hold the same bytes. False if that is not known: too many
  /// ranges were read, or a read is in progress.
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

  /// Called before a read. Returns false if the record has ended and the read need not be recorded.
  bool begin();
  /// Returns true if nothing is recorded any more.
  bool has_ended() const { return ended_.load(std::memory_order_relaxed); }
  /// Called after a read for which begin() returned true. `bytes`: nullopt if the read failed.
  void end(FileOffset at, std::optional<ByteView> bytes);
  static std::optional<Checksums> checksums_of(const ByteSource& source, FileOffset at, std::uint64_t length);

  mutable codec::Mutex mutex_;
  std::shared_ptr<const ByteSource> source_ GUARDED_BY(mutex_);
  std::vector<Piece> pieces_ GUARDED_BY(mutex_);
  unsigned reading_ GUARDED_BY(mutex_) = 0;
  std::atomic<bool> ended_{false};  // the record is incomplete
};

}  // namespace cframefs::frame
