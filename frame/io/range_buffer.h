// Reads short ranges of a source with few system calls: opening a frame reads ranges that lie close together at both
// ends of the file.
//
// Thread safety: one thread. Ownership: borrows the source; returned views are valid while the buffer exists.
// Errors: those of the source; corruption if the source ends before the range.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

class RangeBuffer {
 public:
  explicit RangeBuffer(const ByteSource& source) : source_(source) {}

  /// Reads the part of [at, at + size) inside the source into a window, unless a window holds it already.
  Result<void> load(FileOffset at, std::size_t size);
  /// Returns `size` bytes from `at`; reads them if no window holds them.
  Result<ByteView> get(FileOffset at, std::size_t size);
  /// Returns the bytes from `at` that a window holds already, at most `size`; may be empty.
  ByteView peek(FileOffset at, std::size_t size) const;

 private:
  struct Window {
    std::uint64_t begin;
    std::vector<std::uint8_t> bytes;
  };

  const ByteSource& source_;
  std::vector<Window> windows_;
};

}  // namespace cframefs::frame
