// Finds the chunks in a file that no index leads to.
//
// A place is taken for a chunk if its header is plausible, it lies within the file and all of it decodes. What lies in
// a trailer (contents of metalayers) is passed over, and what is an index of chunks found before it is told apart.
//
// What only looks like chunks costs time in proportion to the file: a search that has decoded more than that in vain is
// given up, with what it has found.
//
// Thread safety: functions only. Units: bytes. Memory: some bytes for each chunk found, and one block.
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
  std::optional<std::uint64_t> given_up_at;                // in the source
};

struct ChunkSearch {
  bool begin_known = true;       // that is where the header ends; else it ends later
  std::uint64_t begin = 0;       // chunk offsets count from here, and none lies before
  std::int32_t typesize = 0;     // of the frame; 0: that of the first chunk found
  std::int32_t most_nbytes = 0;  // longest plain length; 0: not known
  std::int64_t most_chunks = 0;  // by the header; 0: not known
};

Result<FoundChunks> find_chunks(const ByteSource& source, const ChunkSearch& search);

}  // namespace cframefs::frame
