// Applies the filters literally as filters.md defines them. Slow and simple; shares no code with the decoder.
#pragma once

#include <cstddef>

#include "tests/codec/test_bytes.h"

namespace cframefs {

Bytes apply_shuffle(std::size_t width, const Bytes& block);
/// `old_layout`: that of Blosc1, which copies blocks whose number of items is no multiple of eight.
Bytes apply_bitshuffle(std::size_t width, bool old_layout, const Bytes& block);
/// `reference`: unfiltered block 0; empty for block 0 itself.
Bytes apply_delta(std::size_t typesize, const Bytes& reference, const Bytes& block);
/// `restarted`: filter 34.
Bytes apply_bytedelta(std::size_t planes, bool restarted, const Bytes& block);

}  // namespace cframefs
