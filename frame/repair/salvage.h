// Opens contiguous frames that are damaged, as far as what is left of them tells which chunks there are.
//
// What is missing is made up: a trailer without metalayers, an index from the chunks that a search of the whole file
// finds, a header from the first of these. Only chunks that decode are found so; where an older commit left its index
// in the file, the last such index says in which order they come.
//
// Thread safety: functions only. Ownership: the container shares the source. Memory: some bytes for each chunk found.
// Errors: corruption if nothing is left to open, unsupported for frames whose chunks vary in size, io.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

struct Salvage {
  std::shared_ptr<const FrameContainer> container;
  /// What is not as it was, each half a sentence; empty: the frame opens as it is.
  std::vector<std::string> losses;
  /// Chunks that the header promises and the container does not have; none: no header tells.
  std::optional<std::int64_t> missing_chunks = 0;
};

/// `source`: from the first byte of the frame.
Result<Salvage> open_damaged(std::shared_ptr<const ByteSource> source, std::shared_ptr<IndexCache> cache);

}  // namespace cframefs::frame
