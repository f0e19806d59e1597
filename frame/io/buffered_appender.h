// Appends bytes with few, large writes, and starts their write-back every 4 MiB.
//
// Thread safety: one thread. Ownership: borrows the target. Errors: io; after an error all appended bytes are
// undefined.
#pragma once

#include <vector>

#include "frame/io/write_target.h"

namespace cframefs::frame {

class BufferedAppender {
 public:
  BufferedAppender(WriteTarget& target, FileOffset begin)
      : target_(target), flushed_(begin.value), writeback_started_(begin.value) {}

  /// Returns the file offset of the next appended byte.
  std::uint64_t position() const { return flushed_ + gathered_.size(); }
  Result<void> append(ByteView bytes);
  /// Leaves a gap, which the caller fills later.
  Result<void> skip(std::uint64_t length);
  /// Writes the buffered bytes.
  Result<void> flush();

 private:
  Result<void> put(ByteView bytes);

  WriteTarget& target_;
  std::uint64_t flushed_;
  std::uint64_t writeback_started_;  // write-back of all bytes before this offset has started
  std::vector<std::uint8_t> gathered_;
};

}  // namespace cframefs::frame
