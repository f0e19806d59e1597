// Parses the fixed part of a frame's header, and the map of metalayer names, which header and trailer share.
//
// The functions look only at the bytes that the caller passes. A damaged map does not make the data unreadable, so the
// result holds the damage together with the readable entries. Format: frame_layout.h.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; unsupported for frames of the 2.0 betas,
// later versions, and offset widths other than 64 bits.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "frame/cframe/frame_layout.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// Returns true if a file that begins with `bytes` (at least 10) is a frame, of any version.
bool has_frame_magic(ByteView bytes);

struct FrameHeader {
  FrameParameters parameters;  // cbytes is 0 if nbytes is 0: the field in the file is stale then
  std::uint8_t frame_type = layout::kContiguous;
  std::int64_t chunk_count = -1;  // -1: only the index tells it (chunks of different sizes)
};

/// Parses the fixed part and checks that its fields are consistent. `bytes`: the first 87 bytes of the file, or all
/// bytes of a shorter file.
Result<FrameHeader> parse_fixed_header(ByteView bytes);

/// Checks that the frame fits into `available` bytes and has room for header and trailer.
Result<void> check_extent(const FrameHeader& header, std::uint64_t available);

/// An entry of the map. `offset`: of the 0xc6 marker in front of the content, as the map says, not checked.
struct MapEntry {
  std::string name;
  std::int32_t offset = 0;
};

struct MetalayerMap {
  std::vector<MapEntry> entries;
  std::optional<Error> damage;        // if set, `entries` holds only the entries before the damage
  std::vector<std::uint32_t> sorted;  // indices into `entries`, sorted by name

  /// Returns the first entry of this name, or nullptr if the map has none.
  const MapEntry* find(std::string_view name) const;
};

/// Parses the map that begins at bytes[0]. Bytes after the map are ignored.
MetalayerMap parse_map(ByteView bytes, std::size_t max_entries);

}  // namespace cframefs::frame
