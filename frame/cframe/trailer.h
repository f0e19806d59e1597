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

#include "codec/format/chunk_header.h"
#include "frame/base/parse_budget.h"
#include "frame/cframe/frame_header.h"
#include "frame/io/byte_source.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

struct Trailer {
  std::uint64_t begin = 0;  // from the start of the frame
  std::uint64_t length = 0;
  MetalayerMap map;
};

/// Finds the trailer from the end of the frame that `header` describes and reads its map of names.
Result<Trailer> read_trailer(RangeBuffer& windows, const FrameHeader& header);

/// The chunk that holds the content of a metalayer.
struct VlmetaChunk {
  std::string name;
  FileOffset offset;         // in the source
  std::uint64_t stored = 0;  // its length there
  codec::ChunkHeader header;

  std::uint64_t nbytes() const { return static_cast<std::uint64_t>(header.nbytes); }
};

/// The longest plain content. Valid ones can be of any ratio, so that only a size tells what is too much.
inline constexpr std::uint64_t kMaxVlmetalayer = std::uint64_t{256} << 20;

/// Looks at the header of the chunk that lies in the `stored` bytes from `offset`.
Result<VlmetaChunk> look_at_vlmetalayer(const ByteSource& source, const std::string& name, FileOffset offset,
                                        std::uint64_t stored);
/// The same of a metalayer of the frame that `source` is.
Result<VlmetaChunk> find_vlmetalayer(const ByteSource& source, const Trailer& trailer, const MapEntry& entry);

/// The chunk as it is stored. unsupported: it would take more memory than `budget` has left, from which it is taken.
Result<std::vector<std::uint8_t>> read_stored_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk,
                                                          ParseBudget& budget);
/// Its plain content.
Result<std::vector<std::uint8_t>> read_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk);
/// Whether it can be decoded, of which nothing is kept.
Result<void> check_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk, ParseBudget& budget);

}  // namespace cframefs::frame
