// The trailer of a frame: where it is, and the variable-length metalayers in it.
//
// Only the names are read when a frame is opened; a content is fetched and decompressed when it is asked for. A damaged
// map does not make the data unreadable: it is an error of whoever asks for a metalayer. Format: frame_layout.h.
//
// Thread safety: functions and plain values. Units: bytes. Errors: corruption; io from the source.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "frame/byte_source.h"
#include "frame/frame_header.h"
#include "frame/windows.h"

namespace cframefs::frame {

struct Trailer {
  std::uint64_t begin = 0;  // from the start of the frame
  std::uint64_t length = 0;
  MetalayerMap map;
};

/// Finds the trailer from the end of the frame that `header` describes and reads its map of names.
Result<Trailer> read_trailer(Windows& windows, const FrameHeader& header);

/// The plain content of the metalayer that is stored as this chunk.
Result<std::vector<std::uint8_t>> unpack_vlmetalayer(const std::string& name, ByteView stored);

/// The plain content of one metalayer. `source` is the frame's.
Result<std::vector<std::uint8_t>> read_vlmetalayer(const ByteSource& source, const Trailer& trailer,
                                                   const MapEntry& entry);

}  // namespace cframefs::frame
