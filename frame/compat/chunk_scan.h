// Where chunks lie that stand one after the other in a file: by their headers, or by a list of offsets.
//
// Thread safety: immutable. Units: bytes of the file. Errors: corruption, unsupported; io from the source.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frame/base/coordinates.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

struct ChunkOffsets {
  std::vector<std::uint64_t> begins;  // in the file
  std::vector<std::uint64_t> plain;   // where each begins in the flat file, and the end of the last; only if walked
  std::uint64_t end = 0;              // of the last chunk and what belongs to it
  std::optional<Error> damage;        // why those behind the last one cannot be found
};

/// Goes from header to header. `begin`: of the first chunk; `gap`: bytes between chunks; `count`: of chunks, -1: until
/// the source ends. An io error fails; any other ends the walk with `damage`.
Result<ChunkOffsets> walk_chunks(const ByteSource& source, std::uint64_t begin, std::uint64_t gap, std::int64_t count);

/// Reads `count` little-endian offsets at `at`; nullopt if they cannot be those of chunks: unset, not ascending, or
/// outside [begin, size of the source).
Result<std::optional<ChunkOffsets>> read_offsets(const ByteSource& source, std::uint64_t at, std::int64_t count,
                                                 std::uint64_t begin, std::uint64_t gap);

}  // namespace cframefs::frame
