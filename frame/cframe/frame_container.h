// The common base of contiguous and sparse frames: header, metalayers, index, and the mapping from uncompressed bytes
// to chunks.
//
// The subclasses differ in where the index lies and in what its entries mean: offsets in the chunk section, or numbers
// of chunk files.
//
// The table of chunk sizes takes only lengths from chunk headers, and returns no byte of a chunk. It need not verify
// digests: ChunkReader verifies the chunk before it returns bytes, and refuses a chunk of another length.
//
// Thread safety: immutable, except for the table of chunk sizes (for frames whose chunks differ in size), which is
// built on first use under table_mutex_. Ownership: shares the source of header, index and trailer. Errors: as
// container.h.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/cframe/chunk_table.h"
#include "frame/cframe/fixed_metalayers.h"
#include "frame/cframe/frame_header.h"
#include "frame/cframe/frame_seal.h"
#include "frame/cframe/index_cache.h"
#include "frame/cframe/offset_index.h"
#include "frame/cframe/trailer.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// What is known about a frame after opening it.
struct FrameParts {
  std::shared_ptr<const ByteSource> source;  // byte 0 is the first byte of the header
  FrameHeader header;
  MetalayerSection metalayers;
  Trailer trailer;
  std::unique_ptr<const OffsetIndex> index;  // null if the frame has no chunks
  std::shared_ptr<const FrameSeal> seal;     // null if there is none
  bool all_stored = false;                   // the format has no index entries for special chunks
  bool old_bitshuffle = false;               // see codec::DecodeParams
};

/// Reads and checks header, trailer and the start of the index of a frame of this type (layout::kContiguous or
/// kSparse). `source`: the bytes from the frame's first byte to the end of the file.
Result<FrameParts> read_frame_parts(std::shared_ptr<const ByteSource> source, std::uint8_t frame_type,
                                    std::shared_ptr<IndexCache> cache);

class FrameContainer : public Container {
 public:
  const FrameParameters& parameters() const override { return parts_.header.parameters; }
  const FrameContainer* as_frame() const override { return this; }
  std::int64_t chunk_count() const override { return parts_.index ? parts_.index->count() : 0; }
  Result<ChunkLocation> locate_chunk(ChunkNumber chunk) const override;
  Result<ChunkDigests> digests(ChunkNumber chunk) const override;
  Result<ChunkSpan> chunk_at(FlatOffset at) const override;
  Result<ChunkNumber> next_chunk(ChunkNumber from, bool hole) const override;
  std::unique_ptr<ChunkRuns> runs(ChunkNumber begin, ChunkNumber end) const override;
  std::int64_t chunks_decoded_together() const override;
  const codec::DecodeParams& environment() const override { return environment_; }
  const std::vector<MetalayerPlace>& metalayer_places() const override { return parts_.metalayers.layers; }
  Result<std::vector<std::uint8_t>> metalayer(const MetalayerPlace& place) const override;
  const std::optional<Error>& metalayer_damage() const override { return parts_.metalayers.damage; }
  std::vector<std::string> lost_metalayers() const override { return parts_.metalayers.lost; }
  std::vector<std::string> vlmetalayer_names() const override;
  std::uint64_t stored_bytes() const override { return parts_.source->stored(); }
  /// Returns the chunk that holds the content of a variable-length metalayer, compressed, and its length in bytes.
  Result<std::uint64_t> stored_vlmetalayer_length(const std::string& name) const;
  Result<std::vector<std::uint8_t>> stored_vlmetalayer(const std::string& name, ParseBudget& budget) const;
  const std::optional<Error>& vlmetalayer_damage() const override { return parts_.trailer.map.damage; }
  Result<std::uint64_t> vlmetalayer_length(const std::string& name) const override;
  Result<std::vector<std::uint8_t>> vlmetalayer(const std::string& name) const override;
  Result<void> check_vlmetalayer(const std::string& name, ParseBudget& budget) const override;

  /// Returns the index entry of a chunk. REQUIRES: 0 <= chunk < chunk_count().
  Result<std::int64_t> index_entry(ChunkNumber chunk) const { return parts_.index->entry(chunk.value); }
  /// Returns the entry that all chunks have, or nullopt if the entries are not known to be equal.
  std::optional<std::int64_t> uniform_entry() const { return parts_.index ? parts_.index->uniform() : std::nullopt; }
  Result<OffsetIndex::Piece> index_piece(ChunkNumber from) const { return parts_.index->piece(from.value); }
  const Trailer& trailer() const { return parts_.trailer; }
  /// Returns the bytes of the trailer.
  Result<std::vector<std::uint8_t>> stored_trailer() const;
  /// Returns the seal, or null if the frame has none; it may not hold.
  std::shared_ptr<const FrameSeal> seal() const { return parts_.seal; }

 protected:
  explicit FrameContainer(FrameParts parts);

  const FrameParts& parts() const { return parts_; }

  /// Returns where the content of a variable-length metalayer lies.
  virtual Result<VlmetaChunk> vlmetalayer_chunk(const std::string& name) const;

  /// Sets source, offset and limit of `location` to those of the chunk that `entry` refers to. REQUIRES: entry >= 0.
  virtual Result<void> find_stored(std::int64_t entry, ChunkLocation& location) const = 0;

  /// Implements find_stored() for entries that are offsets in the chunk section, which follows the header. `least`: the
  /// minimum length of a chunk header, in bytes.
  Result<void> find_in_section(std::int64_t entry, std::uint64_t least, ChunkLocation& location) const;

 private:
  struct HeaderScan;

  Result<ChunkLocation> location_of_entry(std::int64_t entry) const;
  Result<std::shared_ptr<const ChunkTable>> chunk_table() const;
  Result<ChunkTable> measure_chunks() const;
  Result<std::optional<ChunkTable::Sizes>> measure(ChunkRuns& runs, HeaderScan& scan) const;
  Result<std::optional<std::int32_t>> measure_entry(std::int64_t entry, HeaderScan& scan) const;
  std::uint64_t most_runs() const;

  const FrameParts parts_;
  const codec::DecodeParams environment_;
  mutable codec::Mutex table_mutex_;
  mutable std::shared_ptr<const ChunkTable> table_ GUARDED_BY(table_mutex_);  // null until built
  mutable std::optional<Error> table_error_ GUARDED_BY(table_mutex_);         // why table_ cannot be built
};

/// Returns as_frame() of the container, shared with it; null for other formats.
std::shared_ptr<const FrameContainer> as_shared_frame(const std::shared_ptr<const Container>& container);

}  // namespace cframefs::frame
