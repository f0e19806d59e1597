// The header of a frame: its fixed part, and the map of names that metalayers have here and in the trailer.
//
// Parsing only looks at the bytes it is given. A damaged map does not make the data unreadable, so the damage is
// reported beside what could be read. Format: frame_layout.h.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for the frames of the 2.0
// betas, later versions, other offset widths.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/cframe/frame_layout.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// Whether these first bytes (10 are enough) are those of a frame of whatever version.
bool has_frame_magic(ByteView bytes);

struct FrameHeader {
  FrameParameters parameters;  // cbytes is 0 where nbytes is 0: what the file says then is stale
  std::uint8_t frame_type = layout::kContiguous;
  std::int64_t chunk_count = -1;  // -1: only the index knows (chunks of different sizes)
};

/// The fixed part, checked against itself. `bytes`: the first 87, or fewer if the file is shorter.
Result<FrameHeader> parse_fixed_header(ByteView bytes);

/// Checks that a frame of these lengths fits into `available` bytes.
Result<void> check_extent(const FrameHeader& header, std::uint64_t available);

/// One name of a map of metalayers, and where its content's C6 marker lies, as the map says (not checked).
struct MapEntry {
  std::string name;
  std::int32_t offset = 0;
};

struct MetalayerMap {
  std::vector<MapEntry> entries;
  std::optional<Error> damage;        // set: `entries` holds those before the damage
  std::vector<std::uint32_t> sorted;  // their numbers, by name

  /// The first of this name; null if there is none.
  const MapEntry* find(std::string_view name) const;
};

/// The map that begins at the first of `bytes`, which may hold more than the map.
MetalayerMap parse_map(ByteView bytes, std::size_t max_entries);

}  // namespace cframefs::frame
