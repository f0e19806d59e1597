// Byte shuffle: the first bytes of all items, then the second bytes, and so on (filters.md section 3).
//
// `width` is the size of an item in bytes, 1 or more. Bytes at the end that do not fill an item stay where they are.
// The versions in `plain` say what is meant, one byte at a time; the others give the same bytes with vector
// instructions that are chosen when the program runs.
//
// Thread safety: pure functions. REQUIRES: in and out of equal length, not overlapping.
#pragma once

#include <cstddef>

#include "codec/bytes.h"

namespace cframefs::codec {

void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);

/// Undoes `times` shuffles one on top of the other, in one pass, so that a large number costs no more than a small one.
/// (Early releases did that; filters.md section 1.)
void unshuffle_repeatedly(std::size_t width, std::size_t times, ByteView in, ByteSpan out);

namespace plain {
void shuffle(std::size_t width, ByteView in, ByteSpan out);
void unshuffle(std::size_t width, ByteView in, ByteSpan out);
}  // namespace plain

}  // namespace cframefs::codec
