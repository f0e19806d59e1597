// Frames of the betas of C-Blosc2 2.0 (legacy_header.h), to be read only.
//
// Behind the header all is as in a contiguous frame, but that every chunk is stored and any of them may be short. What
// they call usermeta, one piece of content, shows as the variable-length metalayer "usermeta".
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/cframe/index_cache.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// `source`: from the first byte of the frame; bytes behind the frame are ignored. `old_bitshuffle`: beta.3 and beta.4,
/// which nothing tells from beta.5, wrote the frame.
Result<std::shared_ptr<const Container>> open_legacy_frame(std::shared_ptr<const ByteSource> source,
                                                           std::shared_ptr<IndexCache> index_cache,
                                                           bool old_bitshuffle);

}  // namespace cframefs::frame
