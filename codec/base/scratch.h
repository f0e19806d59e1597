// Memory that is written before it is read, and kept from one use to the next.
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
  /// At least `size` bytes, contents unspecified; valid until the next call.
  ByteSpan get(std::size_t size);

  /// Gives the memory back if it is more than `keep` bytes.
  void trim(std::size_t keep);

 private:
  std::unique_ptr<std::uint8_t[]> bytes_;
  std::size_t size_ = 0;
};

}  // namespace cframefs::codec
