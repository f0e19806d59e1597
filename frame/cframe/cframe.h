// Contiguous frames: header, chunks, index and trailer in one file or in a range of a file.
//
// An index entry is the offset of a chunk from the end of the header. Chunks may lie in any order, with dead bytes
// between them, and several entries may refer to one chunk.
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/cframe/frame_container.h"

namespace cframefs::frame {

/// Opens the frame that begins at byte 0 of `source`. Bytes after the frame are ignored.
Result<std::shared_ptr<const FrameContainer>> open_cframe(std::shared_ptr<const ByteSource> source,
                                                          std::shared_ptr<IndexCache> index_cache);

}  // namespace cframefs::frame
