// Appends bytes with few, large writes, and starts their write-back every 4 MiB.
//
// Thread safety: one thread. Ownership: borrows the file operations and the descriptor. Errors: io; after an error all
// appended bytes are undefined.
#pragma once

#include <vector>

#include "frame/io/file_ops.h"

namespace cframefs::frame {

class BufferedAppender {
 public:
  BufferedAppender(FileOps& files, OpenFile file, FileOffset begin)
      : files_(files), file_(file), flushed_(begin.value), writeback_started_(begin.value) {}

  /// Returns the file offset of the next appended byte.
  std::uint64_t position() const { return flushed_ + gathered_.size(); }
  Result<void> append(ByteView bytes);
  /// Writes the buffered bytes.
  Result<void> flush();

 private:
  Result<void> put(ByteView bytes);

  FileOps& files_;
  const OpenFile file_;
  std::uint64_t flushed_;
  std::uint64_t writeback_started_;  // write-back of all bytes before this offset has started
  std::vector<std::uint8_t> gathered_;
};

}  // namespace cframefs::frame
