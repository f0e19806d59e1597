// How fast chunks of made-up measurements decode and encode, for every codec, filter pipeline and typesize, at level 5:
// "decode/CODEC/FILTERS/tTYPESIZE" and "encode/…", with the ratio as label.
//
// Thread safety: for the main thread before the benchmarks run.
#pragma once

#include <cstddef>

#include <benchmark/benchmark.h>

namespace cframefs {

/// Bytes per second of the memcpy benchmark of this run, which is registered first; 0 before.
inline double copy_rate = 0;

/// Reports `each` bytes for every iteration, also as a share of what memcpy does (counter `of_memcpy`).
void count_bytes(benchmark::State& state, std::size_t each);

void register_matrix();

}  // namespace cframefs
