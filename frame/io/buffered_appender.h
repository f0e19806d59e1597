// Writes bytes one after the other, gathered so that the file sees few, large writes; of many bytes, the disk is told
// to begin with those that are there.
//
// Thread safety: one thread. Ownership: borrows the file operations and the descriptor. Errors: io; after one, what
// lies from the first byte on is undefined.
#pragma once

#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

class BufferedAppender {
 public:
  BufferedAppender(FileOps& files, int fd, FileOffset begin)
      : files_(files), fd_(fd), flushed_(begin.value), writeback_started_(begin.value) {}

  /// Where the next byte goes.
  std::uint64_t position() const { return flushed_ + gathered_.size(); }
  Result<void> append(ByteView bytes);
  /// Writes what is gathered.
  Result<void> flush();

 private:
  Result<void> put(ByteView bytes);

  FileOps& files_;
  const int fd_;
  std::uint64_t flushed_;
  std::uint64_t writeback_started_;  // what lies before is on its way to the disk
  std::vector<std::uint8_t> gathered_;
};

}  // namespace cframefs::frame
