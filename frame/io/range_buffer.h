// Short pieces of a source, read with few calls: what opening a frame looks at lies close together at both its ends.
//
// Thread safety: one thread. Ownership: borrows the source; the views it returns live as long as it does.
// Errors: the source's; corruption if the source ends before the bytes.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

class RangeBuffer {
 public:
  explicit RangeBuffer(const ByteSource& source) : source_(source) {}

  /// Reads [at, at + size), as far as the source goes, unless a window holds it.
  Result<void> load(FileOffset at, std::size_t size);
  /// `size` bytes from `at`, out of a window or read now.
  Result<ByteView> get(FileOffset at, std::size_t size);
  /// The bytes from `at` that a window holds already, at most `size`; may be empty.
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
