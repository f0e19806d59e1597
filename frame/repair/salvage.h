// Opens damaged contiguous frames.
//
// Replaces the parts that are missing: a trailer by one without metalayers, an index by the chunks that a search of the
// whole file finds, a header by one made from the first of these chunks. The search finds only chunks that decode. If
// an older commit left its index in the file, the last such index gives the order of the chunks. Bytes of chunks are
// not read here: readers of the container read them through ChunkReader, as of any frame.
//
// Thread safety: functions only. Ownership: the container shares the source. Memory: some bytes for each chunk found.
// Errors: corruption if no chunk is found, unsupported for frames whose chunks differ in size, io.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

struct Salvage {
  std::shared_ptr<const FrameContainer> container;
  /// Descriptions of the damage and of what is lost, for messages. Empty: the frame is not damaged.
  std::vector<std::string> losses;
  /// Number of chunks by the header that the container lacks. nullopt: unknown, because the header is lost.
  std::optional<std::int64_t> missing_chunks = 0;
};

/// Opens the frame that begins at byte 0 of `source`.
Result<Salvage> open_damaged(std::shared_ptr<const ByteSource> source, std::shared_ptr<IndexCache> cache);

}  // namespace cframefs::frame
