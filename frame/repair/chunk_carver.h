// Finds the chunks of a file without its index.
//
// A chunk begins at an offset if the header is plausible, the chunk lies within the file, and all of it decodes. The
// contents of metalayers in a trailer are skipped. A chunk whose content is an index of chunks found before it is
// returned as an index.
//
// Bytes that look like chunks but do not decode cost time. The search stops when this cost exceeds a bound proportional
// to the stored bytes of the file, and returns the chunks found so far.
//
// Frames keep no digests of chunks, so none can be verified: the whole chunk is decoded instead.
//
// Thread safety: functions only. Units: bytes. Memory: some bytes for each chunk found, and two blocks.
// Errors: io.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frame/io/byte_source.h"

namespace cframefs::frame {

struct FoundChunk {
  std::uint64_t offset = 0;  // in the source
  std::uint64_t cbytes = 0;
  std::int32_t nbytes = 0;
  std::int32_t typesize = 0;
};

struct FoundChunks {
  std::vector<FoundChunk> chunks;                          // in the order of the file
  std::optional<std::vector<std::int64_t>> index_entries;  // of the last index found, counted from ChunkSearch::begin
  std::optional<std::uint64_t> given_up_at;                // offset in the source where the search stopped early
};

struct ChunkSearch {
  bool begin_known = true;       // the header ends at `begin`; false: it ends at `begin` or later
  std::uint64_t begin = 0;       // the search begins here, and chunk offsets count from here
  std::int32_t typesize = 0;     // of the frame; 0: that of the first chunk found
  std::int32_t most_nbytes = 0;  // the most uncompressed bytes of a chunk; 0: unknown
  std::int64_t most_chunks = 0;  // by the header; 0: unknown
};

/// Searches `source` for chunks.
Result<FoundChunks> find_chunks(const ByteSource& source, const ChunkSearch& search);

}  // namespace cframefs::frame
