// One container of chunks, whatever its format: which chunks there are, where they lie, what they are made of.
//
// A Container is one state ("generation") of one file: header, index and metalayers as they were when it was opened. It
// never changes; when the file does, open it again. Implemented by CFrame (cframe.h), SparseFrame (sparse_frame.h),
// LegacyFrame (legacy_frame.h), Bloscpack (bloscpack.h), BareChunk (bare_chunk.h).
//
// Thread safety: immutable, const members may run at once (what they keep inside is guarded).
// Ownership: shared; views, readers and caches hold std::shared_ptr<const Container>.
// Errors: corruption and unsupported name the chunk and the file offset; io passes through.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "codec/chunk_decoder.h"
#include "frame/base/coordinates.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// What the header says of the whole. The codec fields are defaults for chunks to come; every stored chunk describes
/// itself. Bytes throughout.
struct FrameParameters {
  std::string kind;  // "cframe", "sframe", "legacy", "bloscpack", "chunk"
  int frame_version = 0;
  std::uint8_t compcode = 0;  // compressor code (codecs.md section 1)
  std::uint8_t compcode_meta = 0;
  std::uint8_t clevel = 0;
  std::uint8_t split_mode = 0;  // 1 always, 2 never, 3 auto, 4 forward-compat; 0 not recorded
  std::array<std::uint8_t, codec::kFilterSlots> filters{};
  std::array<std::uint8_t, codec::kFilterSlots> filters_meta{};
  std::int32_t typesize = 1;
  std::int32_t blocksize = 0;  // 0: chosen per chunk
  std::int32_t chunksize = 0;  // 0: chunks of different sizes; -1: nothing appended yet
  std::uint64_t nbytes = 0;    // plain length of all chunks together
  std::uint64_t cbytes = 0;    // length of the chunk section (cframe), sum of the chunk files (sframe)
  std::uint64_t header_length = 0;
  std::uint64_t frame_length = 0;
  bool variable_chunks = false;
  bool vl_blocks = false;
  bool use_dict = false;
};

struct ChunkLocation;

/// Holds stored chunks against the digests that some formats keep of them.
class ChunkVerifier {
 public:
  virtual ~ChunkVerifier() = default;
  /// `cbytes`: of the chunk, by its header. Chunks that were found good are remembered. corruption: the digests differ.
  virtual Result<void> verify(ChunkNumber chunk, const ChunkLocation& place, std::uint64_t cbytes) const = 0;
};

/// Where a chunk lies, or what it is made of if it is not stored.
struct ChunkLocation {
  codec::SpecialValue special = codec::SpecialValue::none;  // zeros, nan or uninitialised: not stored
  std::int32_t nbytes = -1;                       // plain length the container expects; -1: only the chunk knows
  std::shared_ptr<const ByteSource> source;       // stored chunks: where the bytes are
  FileOffset offset;                              // of the chunk's header in `source`
  std::uint64_t limit = 0;                        // bytes from there that may belong to the chunk
  std::shared_ptr<const ChunkVerifier> verifier;  // null: the format keeps no digests
};

/// A chunk and where it begins in chunk order.
struct ChunkSpan {
  ChunkNumber chunk;
  FlatOffset begin;
  std::uint32_t nbytes = 0;
};

class ParseBudget;

/// Chunks of which the index says the same, and which have the same plain length.
struct ChunkRun {
  ChunkNumber first;
  std::int64_t count = 1;
  std::int64_t step = 1;  // from one of them to the next
  std::int64_t same = 0;  // if it is `alike`: runs of the same number are of the same chunks
  bool alike = false;
  const Error* damage = nullptr;  // the index does not tell what they are; valid until the next call
};

/// All chunks of a range, each in one run. The order of the runs is that of their first chunks.
class ChunkRuns {
 public:
  virtual ~ChunkRuns() = default;
  /// False: there are no more. Errors: io.
  virtual Result<bool> next(ChunkRun& run) = 0;
};

struct Metalayer {
  std::string name;
  std::vector<std::uint8_t> content;  // variable-length metalayers: decompressed
};

/// A metalayer of fixed length, in the header.
struct MetalayerPlace {
  std::string name;
  FileOffset offset;                                                // of its content
  std::uint64_t length = 0;                                         // of its content
  std::optional<std::vector<std::uint8_t>> content = std::nullopt;  // set where it is short
};

class Container {
 public:
  virtual ~Container() = default;

  virtual const FrameParameters& parameters() const = 0;
  virtual std::int64_t chunk_count() const = 0;
  virtual Result<ChunkLocation> place(ChunkNumber chunk) const = 0;

  /// The chunk that holds byte `at` of the chunks laid end to end. REQUIRES: at < parameters().nbytes. Constant time
  /// for chunks of one size; where sizes differ the first call reads all chunk headers.
  virtual Result<ChunkSpan> locate(FlatOffset at) const = 0;

  /// The first chunk at or after `from` that is (`hole`) or is not (`!hole`) zeros by the index alone: special zeros or
  /// uninitialised. chunk_count() if there is none.
  virtual Result<ChunkNumber> next_chunk(ChunkNumber from, bool hole) const = 0;

  /// The chunks [begin, end): by what the index says of them, so that what is said of very many costs no more than what
  /// is said of one. REQUIRES: 0 <= begin <= end <= chunk_count(); the container outlives what is returned.
  virtual std::unique_ptr<ChunkRuns> runs(ChunkNumber begin, ChunkNumber end) const;

  /// Chunks whose index entries are decoded together: runs() of less than these decodes more than it is asked for.
  virtual std::int64_t chunks_decoded_together() const { return 1; }

  virtual const codec::DecodeParams& environment() const = 0;

  /// Fixed metalayers in stored order.
  virtual const std::vector<MetalayerPlace>& metalayer_places() const;
  /// The content of one of them. unsupported: it is longer than what the file stores justifies.
  virtual Result<std::vector<std::uint8_t>> metalayer(const MetalayerPlace& place) const;
  /// All of them with their contents.
  Result<std::vector<Metalayer>> metalayers() const;
  /// Set if not all of them could be read. The chunks can be all the same, but what the metalayers said about them
  /// (that they are tiles of an array) may be among what is lost.
  virtual const std::optional<Error>& metalayer_damage() const { return no_damage(); }
  /// Names of those that could not be read, as far as these are known.
  virtual std::vector<std::string> lost_metalayers() const { return {}; }
  /// Names of the variable-length metalayers in stored order.
  virtual std::vector<std::string> vlmetalayer_names() const = 0;
  /// Set if not all of these names could be read.
  virtual const std::optional<Error>& vlmetalayer_damage() const { return no_damage(); }
  /// Length of the plain content of one, which is not decompressed; invalid if there is no such name.
  virtual Result<std::uint64_t> vlmetalayer_length(const std::string& name) const;
  /// Plain content of one; invalid if there is no such name.
  virtual Result<std::vector<std::uint8_t>> vlmetalayer(const std::string& name) const = 0;
  /// Whether the content of one can be decoded, without keeping it. unsupported: that would cost more than `budget`.
  virtual Result<void> check_vlmetalayer(const std::string& name, ParseBudget& budget) const;
  /// What the container takes on disk, as far as it lies in one file.
  virtual std::uint64_t stored_bytes() const { return parameters().frame_length; }

 protected:
  static const std::optional<Error>& no_damage() {
    static const std::optional<Error> none;
    return none;
  }
};

}  // namespace cframefs::frame
