// The fixed metalayers in a frame's header: their names and where their contents lie.
//
// A header is as long as the file says, so it is never read whole: opening a frame reads the map of names, which has
// but 16, and the contents that are short; the others are read when they are asked for.
//
// Thread safety: functions and plain values. Units: bytes. Errors: io from the source; unsupported for a content that
// is longer than what the file stores justifies.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/cframe/frame_layout.h"
#include "frame/container/container.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

struct MetalayerSection {
  std::vector<MetalayerPlace> layers;
  std::optional<Error> damage;    // the first there was; `layers` holds what could be read
  std::vector<std::string> lost;  // names of those that could not, as far as they are known
};

/// Those of a header of this length, whose map begins at `map_at`. REQUIRES: the source has so many bytes.
Result<MetalayerSection> read_metalayers(RangeBuffer& windows, std::uint64_t header_length,
                                         std::size_t map_at = layout::kMetalayersAt);

/// The content of one of them.
Result<std::vector<std::uint8_t>> read_metalayer(const ByteSource& source, const MetalayerPlace& place);

}  // namespace cframefs::frame
