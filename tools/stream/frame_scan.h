// Statistics of a frame's chunks for `cframe info`.
//
// The scan counts the whole index, by runs of equal entries. It reads at most a given number of chunk headers, because
// each costs a read. A header is counted without a look at the chunk's digest, which would cost a read of the whole
// chunk; `cframe verify` does that. A chunk that the index names many times counts each time, and is read once. Thread
// safety: functions only. Errors: damage is counted, and the first error kept; only I/O errors and Ctrl-C (io EINTR)
// end a scan early.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <optional>
#include <string>

#include "frame/container/container.h"
#include "tools/lib/progress.h"
#include "tools/stream/frame_map.h"

namespace cframefs::tools {

/// What the headers of stored chunks say.
struct HeaderCounts {
  std::int64_t read = 0;
  std::int64_t repeated = 0;
  std::int64_t stored_special = 0;  // zeros, NaN or uninitialised by the chunk's own header
  std::int64_t memcpyed = 0;
  std::int64_t split = 0;  // one stream per byte of an item
  std::int64_t unsplit = 0;
  std::int64_t dictionary = 0;
  std::int64_t instrumented = 0;
  std::int64_t variable_blocks = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t cbytes = 0;
  std::map<std::string, std::int64_t> codecs;                   // stream formats of compressed chunks
  std::optional<std::int32_t> least_blocksize, most_blocksize;  // of compressed chunks
  std::int32_t least_chunk = std::numeric_limits<std::int32_t>::max();
  std::int32_t most_chunk = 0;

  /// Adds `count` chunks with this header.
  void add(const codec::ChunkHeader& header, std::int64_t count);
};

struct FrameScan {
  // From the index, of all chunks.
  std::int64_t chunks = 0;
  std::int64_t zeros = 0;
  std::int64_t nan = 0;
  std::int64_t uninitialised = 0;
  std::int64_t stored = 0;

  HeaderCounts headers;  // of the first stored chunks
  bool complete = true;  // these are all stored chunks

  std::int64_t damaged = 0;
  std::optional<codec::Error> first_damage;
};

/// Scans the container. `most_headers`: the largest number of chunk headers to read. `mapper`: gets the runs of the
/// same walk, and has all of them if the scan is complete and has found no damage; may be null.
codec::Result<FrameScan> scan_frame(const frame::Container& container, std::int64_t most_headers, FrameMapper* mapper,
                                    const std::atomic<bool>& stop, Progress& progress);

}  // namespace cframefs::tools
