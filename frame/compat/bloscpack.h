// Bloscpack files (.blp): a sequence of Blosc1 chunks, each followed by its digest.
//
// If the header records the uncompressed size, opening reads only header, head of the metadata and headers of the first
// chunks. Chunks are located later by the offsets section or, if that is missing or invalid, by one walk over all chunk
// headers. If the header does not record the size, opening walks. A digest is checked when its chunk is first read.
//
// The metadata section appears as the variable-length metalayer "metadata".
//
// Thread safety, ownership, errors: as container.h.
#pragma once

#include <memory>

#include "frame/container/container.h"

namespace cframefs::frame {

/// Opens a Bloscpack file. `source`: begins with the file. If the header has a chunk count, bytes after the last chunk
/// are ignored; without offsets, a further chunk there is corruption.
Result<std::shared_ptr<const Container>> open_bloscpack(std::shared_ptr<const ByteSource> source);

}  // namespace cframefs::frame
