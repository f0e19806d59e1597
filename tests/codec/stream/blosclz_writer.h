// Writes BloscLZ streams instruction by instruction, and the bytes that they decode to, from codecs.md section 3.
// Shares no code with the decoder under test.
#pragma once

#include <cstddef>

#include "tests/codec/test_bytes.h"

namespace cframefs {

class BlosclzWriter {
 public:
  /// REQUIRES: 1 to 32 bytes.
  BlosclzWriter& literals(const Bytes& bytes);
  /// REQUIRES: distance in 1..73727, length >= 3.
  BlosclzWriter& match(std::size_t distance, std::size_t length);

  const Bytes& stream() const { return stream_; }
  const Bytes& plain() const { return plain_; }

 private:
  Bytes stream_;
  Bytes plain_;
};

/// A simple encoder, which finds matches of at least 4 bytes with a table. Its last instruction is a literal run.
Bytes blosclz_encode(const Bytes& plain);

/// Returns true if the decoder under test decodes `stream` to `plain`. Uses a buffer of exactly the right size, so that
/// a sanitizer detects any access past it.
bool decodes_to(const Bytes& stream, const Bytes& plain);

}  // namespace cframefs
