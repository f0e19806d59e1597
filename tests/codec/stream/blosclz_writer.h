// Writes BloscLZ streams instruction by instruction, and what they must decode to, from codecs.md section 3. The
// writer knows nothing of the decoder under test.
#pragma once

#include <cstddef>

#include "tests/codec/test_bytes.h"

namespace cframefs {

class BlosclzWriter {
 public:
  /// Up to 32 bytes.
  BlosclzWriter& literals(const Bytes& bytes);
  /// distance in 1..73727, length from 3 on.
  BlosclzWriter& match(std::size_t distance, std::size_t length);

  const Bytes& stream() const { return stream_; }
  const Bytes& plain() const { return plain_; }

 private:
  Bytes stream_;
  Bytes plain_;
};

/// A simple encoder: matches of 4 bytes and more where a hash table finds them. Its last instruction is a literal.
Bytes blosclz_encode(const Bytes& plain);

/// Whether the decoder under test makes `plain` of `stream`, in a buffer of exactly the right size, so that a sanitizer
/// sees any byte beyond.
bool decodes_to(const Bytes& stream, const Bytes& plain);

}  // namespace cframefs
