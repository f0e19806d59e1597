// Bloscpack files (.blp): chunks of Blosc1 one after the other, each followed by a digest of it.
//
// Where the header tells how many bytes there are, opening reads it and the head of the metadata, no more. Chunks are
// then found by the section of offsets, or, if there is none that can be trusted, by walking from chunk to chunk once.
// Where the header does not tell, opening walks. A digest is checked when its chunk is first read.
//
// The section of metadata shows as the variable-length metalayer "metadata".
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/container/container.h"

namespace cframefs::frame {

/// `source`: from the first byte of the file; bytes behind the last chunk are ignored where the header counts them.
Result<std::shared_ptr<const Container>> open_bloscpack(std::shared_ptr<const ByteSource> source);

}  // namespace cframefs::frame
