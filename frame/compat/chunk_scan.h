// Locates the chunks of a file that stores them in sequence: by their headers, or by a list of offsets.
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
  std::vector<std::uint64_t> begins;  // file offset of each chunk
  std::vector<std::uint64_t> plain;   // flat offset of each chunk, then the end of the last; only of walk_chunks()
  std::uint64_t end = 0;              // end of the last chunk, gap included; of read_offsets(): size of the source
  std::optional<Error> damage;        // why further chunks cannot be located
};

/// Walks from chunk header to chunk header. `begin`: offset of the first chunk. `gap`: bytes after each chunk. `count`:
/// number of chunks, -1 for all up to the end of the source. Returns io errors; any other error ends the walk and sets
/// `damage`.
Result<ChunkOffsets> walk_chunks(const ByteSource& source, std::uint64_t begin, std::uint64_t gap, std::int64_t count);

/// Reads `count` little-endian offsets at `at`. Returns nullopt if they cannot be offsets of chunks: unset, not
/// ascending, outside [begin, size of the source), or more than 2^24.
Result<std::optional<ChunkOffsets>> read_offsets(const ByteSource& source, std::uint64_t at, std::int64_t count,
                                                 std::uint64_t begin, std::uint64_t gap);

}  // namespace cframefs::frame
