// Bytedelta: within each byte plane of a shuffled block, every byte minus the one before (filters.md section 8).
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>

#include "codec/base/bytes.h"

namespace cframefs::codec {

enum class BytedeltaKind {
  whole,      // filter 35: the sum runs through the plane
  restarted,  // filter 34, an early form: it starts again behind the last whole 16 bytes of the plane
};

/// Applies filter 35. What does not fill the `planes` planes is copied. REQUIRES: planes >= 1; in and out of equal
/// length, not overlapping.
void bytedelta(std::size_t planes, ByteView in, ByteSpan out);

/// Undoes bytedelta in place. The block is `planes` planes of equal length; what is left over stays as it is.
/// REQUIRES: planes >= 1.
void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block);

namespace plain {
void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block);
}  // namespace plain

}  // namespace cframefs::codec
