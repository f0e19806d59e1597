// Delta: XOR of each item with the previous one in block 0, and with block 0 in all other blocks (filters.md section
// 5).
//
// Thread safety: pure functions.
#pragma once

#include <cstddef>

#include "codec/base/bytes.h"

namespace cframefs::codec {

/// Returns the item size that delta uses for a typesize: 1, 2, 4 or 8 bytes.
std::size_t delta_unit(std::size_t typesize);

/// Applies delta to block 0 of a chunk. Copies a partial item at the end. REQUIRES: in and out of equal length, not
/// overlapping; the same holds for delta_against().
void delta_within(std::size_t unit, ByteView in, ByteSpan out);

/// Applies delta to another block. REQUIRES: reference, the plain bytes of block 0, no shorter than `in`.
void delta_against(std::size_t unit, ByteView reference, ByteView in, ByteSpan out);

/// Undoes delta in block 0 of a chunk. Leaves a partial item at the end unchanged.
void undo_delta_within(std::size_t unit, ByteSpan block);

/// Undoes delta in another block. REQUIRES: reference, the plain bytes of block 0, no shorter than block.
void undo_delta_against(std::size_t unit, ByteView reference, ByteSpan block);

namespace plain {
void undo_delta_within(std::size_t unit, ByteSpan block);
}  // namespace plain

}  // namespace cframefs::codec
