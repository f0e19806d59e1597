// The trailer of a frame and the variable-length metalayers in it.
//
// Opening a frame reads only the names. Contents are read and decompressed on demand. A damaged map does not make the
// data unreadable: only the functions that need a metalayer return it as an error. Format: frame_layout.h.
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

/// Locates the trailer from the end of the frame that `header` describes, and reads its map of names.
Result<Trailer> read_trailer(RangeBuffer& windows, const FrameHeader& header);

/// The chunk that holds the content of a metalayer.
struct VlmetaChunk {
  std::string name;
  FileOffset offset;         // of the chunk in the source
  std::uint64_t stored = 0;  // bytes of the chunk in the source
  codec::ChunkHeader header;

  std::uint64_t nbytes() const { return static_cast<std::uint64_t>(header.nbytes); }
};

/// The longest uncompressed content that is read, in bytes. Valid contents can have any ratio, so only a size can limit
/// them.
inline constexpr std::uint64_t kMaxVlmetalayer = std::uint64_t{256} << 20;

/// Reads and checks the header of the chunk that occupies `stored` bytes at `offset`.
Result<VlmetaChunk> look_at_vlmetalayer(const ByteSource& source, const std::string& name, FileOffset offset,
                                        std::uint64_t stored);
/// Locates the content of `entry` in the frame `source`, then calls look_at_vlmetalayer().
Result<VlmetaChunk> find_vlmetalayer(const ByteSource& source, const Trailer& trailer, const MapEntry& entry);

/// Returns the chunk, compressed. Takes its memory from `budget`. unsupported: `budget` has too little left.
Result<std::vector<std::uint8_t>> read_stored_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk,
                                                          ParseBudget& budget);
/// Returns the uncompressed content.
Result<std::vector<std::uint8_t>> read_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk);
/// Decodes the content block by block to check it, without keeping it.
Result<void> check_vlmetalayer(const ByteSource& source, const VlmetaChunk& chunk, ParseBudget& budget);

}  // namespace cframefs::frame
