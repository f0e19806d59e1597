// Frames of the betas of C-Blosc2 2.0 (legacy_header.h), read-only.
//
// After the header the layout is that of a contiguous frame, except that every chunk is stored and any chunk may be
// short.
// The usermeta content of such a frame appears as the variable-length metalayer "usermeta".
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// Opens a legacy frame. `source`: begins with the frame; bytes after the frame are ignored. `old_bitshuffle`: the
/// frame was written by beta.3 or beta.4; such frames cannot be distinguished from those of beta.5.
Result<std::shared_ptr<const Container>> open_legacy_frame(std::shared_ptr<const ByteSource> source,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           bool old_bitshuffle);

}  // namespace cframefs::frame
