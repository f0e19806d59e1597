// The fixed metalayers in a frame's header: their names and where their contents lie.
//
// The file decides how long its header is, so the header is never read whole. Opening a frame reads the map of at most
// 16 names and the contents of up to 64 KiB each. Longer contents are read on demand.
//
// Thread safety: functions and plain values. Units: bytes. Errors: io from the source; unsupported if a content is
// longer than the stored bytes of the file justify (parse_budget.h).
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
  std::optional<Error> damage;    // the first fault, if any; `layers` holds the readable metalayers
  std::vector<std::string> lost;  // names of the unreadable metalayers, as far as they are known
};

/// Reads the map that begins at `map_at` in a header of this length. REQUIRES: the source has `header_length` bytes.
Result<MetalayerSection> read_metalayers(RangeBuffer& windows, std::uint64_t header_length,
                                         std::size_t map_at = layout::kMetalayersAt);

/// Returns the content of one metalayer.
Result<std::vector<std::uint8_t>> read_metalayer(const ByteSource& source, const MetalayerPlace& place);

}  // namespace cframefs::frame
