// The filters as filters.md words them, in the direction of writing. Slow and simple; the decoder's code is not used.
#pragma once

#include <cstddef>

#include "tests/codec/test_bytes.h"

namespace cframefs {

Bytes apply_shuffle(std::size_t width, const Bytes& block);
/// `old_layout`: that of Blosc1, which leaves blocks alone whose items are no multiple of eight.
Bytes apply_bitshuffle(std::size_t width, bool old_layout, const Bytes& block);
/// `reference`: block 0 as it was put in; empty for block 0 itself.
Bytes apply_delta(std::size_t typesize, const Bytes& reference, const Bytes& block);
/// `restarted`: filter 34.
Bytes apply_bytedelta(std::size_t planes, bool restarted, const Bytes& block);

}  // namespace cframefs
