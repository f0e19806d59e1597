// A reusable buffer whose contents do not survive from one use to the next.
//
// Thread safety: one thread at a time. Units: bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "codec/base/bytes.h"

namespace cframefs::codec {

class Scratch {
 public:
  /// Returns at least `size` bytes of unspecified content, valid until the next call.
  ByteSpan get(std::size_t size);

  /// Frees the memory if it is more than `keep` bytes.
  void trim(std::size_t keep);

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace cframefs::codec
