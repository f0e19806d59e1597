// How fast chunks encode: every codec, filter pipeline and typesize, on measurements made up for it, in bytes of plain
// data per second. The label says how short they got.
//
// Thread safety: call once, before the benchmarks run.
#pragma once

namespace cframefs {

/// Registers encode/CODEC/FILTERS/tTYPESIZE for all of them, at the default level.
void register_encoders();

}  // namespace cframefs
