// Bitshuffle: the lowest bits of all items, then the second lowest, and so on (filters.md section 4).
//
// The layout is that of Blosc2: items are processed in groups of eight; remaining items and bytes at the end are
// copied. The layout of Blosc1 differs only in that the whole block is copied if items remain; filter_decoder.h handles
// that. `width` is the size of an item in bytes, 1 or more.
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
