// The interface of a container of chunks in any format: number, locations and parameters of its chunks, and its
// metalayers (metalayers.h).
//
// A Container is a snapshot ("generation") of one file: header, index and metalayers as they were when it was opened.
// It never changes; after a change of the file, open it again. Implemented by CFrame (cframe.h), SparseFrame
// (sparse_frame.h), LegacyFrame (legacy_frame.h), Bloscpack (bloscpack.h), BareChunk (bare_chunk.h).
//
// Thread safety: immutable; const members may run concurrently (internal caches are guarded).
// Ownership: shared; views, readers and caches hold std::shared_ptr<const Container>.
// Errors: corruption and unsupported name the chunk and the file offset; io passes through.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>

#include "codec/chunk_decoder.h"
#include "frame/base/coordinates.h"
#include "frame/container/chunk_digests.h"
#include "frame/container/container_kind.h"
#include "frame/container/metalayers.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// The parameters in the container's header. Codec and filter fields are defaults for new chunks; every stored chunk
/// has its own. Units: bytes.
struct FrameParameters {
  ContainerKind kind = ContainerKind::none;
  int frame_version = 0;
  std::uint8_t compcode = 0;  // compressor code (codecs.md section 1)
  std::uint8_t compcode_meta = 0;
  std::uint8_t clevel = 0;
  std::uint8_t split_mode = 0;  // 1 always, 2 never, 3 auto, 4 forward-compat; 0 not recorded
  std::array<std::uint8_t, codec::kFilterSlots> filters{};
  std::array<std::uint8_t, codec::kFilterSlots> filters_meta{};
  std::int32_t typesize = 1;
  std::int32_t blocksize = 0;  // 0: chosen per chunk
  std::int32_t chunksize = 0;  // 0: chunks of different sizes; -1: no chunk appended yet
  std::uint64_t nbytes = 0;    // uncompressed length of all chunks
  std::uint64_t cbytes = 0;    // length of the chunk section (cframe), sum of the chunk files (sframe)
  std::uint64_t header_length = 0;
  std::uint64_t frame_length = 0;
  bool variable_chunks = false;
  bool vl_blocks = false;
  bool use_dict = false;
};

struct ChunkLocation;

/// Verifies stored chunks against the digests that some formats keep.
class ChunkVerifier {
 public:
  virtual ~ChunkVerifier() = default;
  /// Verifies a chunk. `cbytes`: its stored length by its header. Remembers valid chunks. corruption: the digests
  /// differ.
  virtual Result<void> verify(ChunkNumber chunk, const ChunkLocation& location, std::uint64_t cbytes) const = 0;
};

/// Where a chunk is stored, or its special value if it is not stored.
struct ChunkLocation {
  codec::SpecialValue special = codec::SpecialValue::none;  // zeros, nan or uninitialised: not stored
  std::int32_t nbytes = -1;                                 // uncompressed length; -1: only the chunk header has it
  std::shared_ptr<const ByteSource> source;                 // of stored chunks
  FileOffset offset;                                        // of the chunk's header in `source`
  std::uint64_t limit = 0;                                  // greatest possible stored length
  std::shared_ptr<const ChunkVerifier> verifier;            // null: the format keeps no digests
};

/// A chunk and its offset in the concatenation of all chunks.
struct ChunkSpan {
  ChunkNumber chunk;
  FlatOffset begin;
  std::uint32_t nbytes = 0;
};

/// Chunks with equal index entries and equal uncompressed length.
struct ChunkRun {
  ChunkNumber first;
  std::int64_t count = 1;
  std::int64_t step = 1;  // difference between successive chunk numbers
  std::int64_t same = 0;  // if `alike`: runs with equal numbers have equal chunks
  bool alike = false;
  const Error* damage = nullptr;  // why the index entries cannot be read; valid until the next call
};

/// Iterates over the runs of a range of chunks. Every chunk is in one run; runs are ordered by their first chunks.
class ChunkRuns {
 public:
  virtual ~ChunkRuns() = default;
  /// Sets `run` to the next run; returns false if there are no more. Errors: io.
  virtual Result<bool> next(ChunkRun& run) = 0;
};

class FrameContainer;

class Container : public Metalayers {
 public:
  virtual const FrameParameters& parameters() const = 0;
  /// Returns true if the format records the compression level; parameters().clevel is 0 otherwise.
  virtual bool records_level() const { return true; }
  /// Returns the container as a frame with an index; nullptr for other formats.
  virtual const FrameContainer* as_frame() const { return nullptr; }
  virtual std::int64_t chunk_count() const = 0;
  virtual Result<ChunkLocation> locate_chunk(ChunkNumber chunk) const = 0;
  /// Returns the digests of a stored chunk, none if it has none: ChunkReader verifies what it reads. REQUIRES: 0 <=
  /// chunk < chunk_count(). Errors: io.
  virtual Result<ChunkDigests> digests(ChunkNumber /*chunk*/) const { return ChunkDigests(); }

  /// Returns the chunk that holds byte `at` of the concatenated chunks. REQUIRES: at < parameters().nbytes. Takes
  /// constant time for chunks of one size; if sizes differ, the first call reads all chunk headers.
  virtual Result<ChunkSpan> chunk_at(FlatOffset at) const = 0;

  /// Returns the first chunk at or after `from` that is (`hole`) or is not (`!hole`) zeros according to the index:
  /// special value zeros or uninitialised. chunk_count() if there is none.
  virtual Result<ChunkNumber> next_chunk(ChunkNumber from, bool hole) const = 0;

  /// Returns the chunks [begin, end) grouped by their index entries, so that cost does not depend on the number of
  /// equal entries. REQUIRES: 0 <= begin <= end <= chunk_count(); the container outlives the returned object.
  virtual std::unique_ptr<ChunkRuns> runs(ChunkNumber begin, ChunkNumber end) const;

  /// Returns how many index entries are decoded at once: runs() of fewer chunks decodes more entries than requested.
  virtual std::int64_t chunks_decoded_together() const { return 1; }

  virtual const codec::DecodeParams& environment() const = 0;

  /// Returns the bytes of the container on disk, for a container in one file.
  virtual std::uint64_t stored_bytes() const { return parameters().frame_length; }

  /// Returns the uncompressed bytes of a block, of all chunks or else of the chunk that was opened last; 0 if neither
  /// is known. A hint: chunks may differ.
  std::int32_t likely_blocksize() const {
    const std::int32_t of_all = parameters().blocksize;
    return of_all > 0 ? of_all : seen_blocksize_.load(std::memory_order_relaxed);
  }
  /// Tells the block size of a chunk that was opened.
  void note_blocksize(std::int32_t bytes) const { seen_blocksize_.store(bytes, std::memory_order_relaxed); }

 private:
  mutable std::atomic<std::int32_t> seen_blocksize_{0};
};

}  // namespace cframefs::frame
