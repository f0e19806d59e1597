// Bytedelta: in each byte plane of a shuffled block, every byte minus the previous one (filters.md section 8).
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>

#include "codec/base/bytes.h"

namespace cframefs::codec {

enum class BytedeltaKind {
  whole,      // filter 35: one sum over the plane
  restarted,  // filter 34, an early form: the sum restarts after the last whole 16 bytes of the plane
};

/// Applies filter 35. Copies the bytes after the `planes` planes. REQUIRES: planes >= 1; in and out of equal length,
/// not overlapping.
void bytedelta(std::size_t planes, ByteView in, ByteSpan out);

/// Undoes bytedelta in place. The block has `planes` planes of equal length; bytes after them are unchanged.
/// REQUIRES: planes >= 1.
void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block);

namespace plain {
void undo_bytedelta(std::size_t planes, BytedeltaKind kind, ByteSpan block);
}  // namespace plain

}  // namespace cframefs::codec
