// Bit shuffle: the lowest bits of all items, then the second lowest, and so on (filters.md section 4).
//
// This is the layout of Blosc2: items are taken in groups of eight; what is left over at the end, items or bytes, stays
// where it is. That of Blosc1 differs only in leaving the whole block alone if any item is left over, which the
// pipeline (filters.h) sees to. `width` is the size of an item in bytes, 1 or more.
//
// Thread safety: pure functions. REQUIRES: in and out of equal length, not overlapping.
#pragma once

#include <cstddef>

#include "codec/base/bytes.h"

namespace cframefs::codec {

void bitshuffle(std::size_t width, ByteView in, ByteSpan out);
void bitunshuffle(std::size_t width, ByteView in, ByteSpan out);

namespace plain {
void bitshuffle(std::size_t width, ByteView in, ByteSpan out);
void bitunshuffle(std::size_t width, ByteView in, ByteSpan out);
}  // namespace plain

}  // namespace cframefs::codec
