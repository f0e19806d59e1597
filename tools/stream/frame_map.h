// A picture of a frame in numbers: which bytes of the file are header, chunks, dead or index, and what the chunks are
// in the order of their numbers. Both are divided into a given number of cells, whatever the size of the frame.
//
// The map reads the header of each stored chunk. A frame of more than kMostHeaders chunks is sampled: then sizes are
// estimates (is_exact). Bytes of a chunk that several index entries name count once. Memory: 24 bytes for each header
// read, and the cells. Thread safety: functions only. Units: bytes. Errors: damage is counted, and the first error
// kept; only I/O errors and Ctrl-C (io EINTR) end a map early.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "frame/container/container.h"
#include "tools/lib/progress.h"

namespace cframefs::tools {

/// What a byte of the file is.
enum class SpaceKind : std::uint8_t { header, live, dead, index, damaged };
inline constexpr std::size_t kSpaceKinds = 5;

/// What a chunk is. `repeated`: one value other than zero and NaN.
enum class ChunkKind : std::uint8_t { stored, zeros, nan, uninitialised, repeated, damaged };
inline constexpr std::size_t kChunkKinds = 6;

/// Stream formats that are told apart in one frame; further ones count as the last.
inline constexpr std::size_t kMostCodecs = 8;

/// A part of the file.
struct SpaceCell {
  std::array<std::uint64_t, kSpaceKinds> bytes{};
  double plain = 0;  // uncompressed bytes of the parts of live chunks that lie here
};

/// Chunks with consecutive numbers.
struct ChunkCell {
  std::array<std::int64_t, kChunkKinds> counts{};
  std::array<std::int64_t, kMostCodecs> codecs{};  // chunks, by index in FrameMap::codecs
  std::uint64_t plain = 0;                         // of stored chunks
  std::uint64_t stored = 0;
};

struct CodecTotal {
  std::string name;
  std::int64_t chunks = 0;
  std::uint64_t plain = 0;
  std::uint64_t stored = 0;
};

struct FrameMap {
  std::uint64_t length = 0;  // of the file, or of all files of a sparse frame
  std::vector<SpaceCell> space;
  std::vector<ChunkCell> order;
  std::array<std::uint64_t, kSpaceKinds> bytes{};
  std::array<std::int64_t, kChunkKinds> counts{};
  std::vector<CodecTotal> codecs;
  bool is_exact = true;
  bool shares_bytes = false;  // two chunks have a byte of the file in common
  std::optional<codec::Error> first_damage;

  std::uint64_t bytes_of(SpaceKind kind) const { return bytes[static_cast<std::size_t>(kind)]; }
  std::int64_t count_of(ChunkKind kind) const { return counts[static_cast<std::size_t>(kind)]; }
};

struct MapRequest {
  std::size_t space_cells = 1;
  std::size_t order_cells = 1;       // at most; a cell has at least one chunk
  std::uint64_t file_bytes = 0;      // of the file from the frame's first byte on, or of all files of a sparse frame
  std::set<std::int64_t> damaged{};  // chunks that are known to be damaged
};

inline constexpr std::int64_t kMostHeaders = std::int64_t{1} << 20;

codec::Result<FrameMap> map_frame(const frame::Container& container, const MapRequest& request,
                                  const std::atomic<bool>& stop, Progress& progress);

/// Makes a map from the runs of a walk that its caller makes for more than the map. The container and the request must
/// outlive it.
class FrameMapper {
 public:
  FrameMapper(const frame::Container& container, const MapRequest& request);
  ~FrameMapper();
  FrameMapper(const FrameMapper&) = delete;
  FrameMapper& operator=(const FrameMapper&) = delete;

  /// Adds a run of chunks that the index has named before, without a look at the file. Returns false if it is another
  /// one: then add_run() takes it. Almost every run of a large index is of this kind, and a Result of each would take
  /// a quarter of the time.
  bool try_add_run(const frame::ChunkRun& run);
  codec::Result<void> add_run(const frame::ChunkRun& run);
  /// Returns the map. Called once, after all runs of the container.
  codec::Result<FrameMap> finish();

 private:
  class State;
  std::unique_ptr<State> state_;
};

/// Returns how many bytes `cframe compact` would remove. Returns nullopt if compact does not take the container:
/// another format, chunks of different sizes, chunks that share bytes, damage.
std::optional<std::uint64_t> compact_gain(const frame::Container& container, const FrameMap& map);

}  // namespace cframefs::tools
