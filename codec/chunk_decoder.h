// One chunk, parsed and validated once; then any of its blocks decodes into the caller's memory.
//
// The decoder never needs the whole chunk in memory. parse() wants a prefix (header, block starts, dictionary); each
// block then wants just its own stored bytes. So a reader of 4 KiB of a 16 MiB chunk on disk reads two short ranges.
//
// "Inner" offsets are plain bytes from the start of the decoded chunk; "stored" offsets are bytes from the first byte
// of the chunk header. Format: chunk.md sections 2 to 7.
//
// Thread safety: immutable after parse(), all const members may run at once, each call with a DecodeContext of its own.
// Ownership: keeps no pointer into the prefix (a dictionary is copied).
// Errors: corruption or unsupported; a failed decode may have written any part of `out`, and nothing outside it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/filter/filter_decoder.h"
#include "codec/format/block_geometry.h"
#include "codec/format/block_starts.h"
#include "codec/format/chunk_header.h"
#include "codec/format/decode_params.h"
#include "codec/stream/decode_context.h"

namespace cframefs::codec {

class BlockStreams;
struct Dictionary;
struct StreamCodec;

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
};

class ChunkDecoder {
 public:
  /// How many bytes from the chunk's start parse() needs at most (never more than header.cbytes): all of it where
  /// blocks vary in length.
  static std::uint64_t prefix_size(const ChunkHeader& header);

  /// `prefix`: at least prefix_size() bytes of the chunk.
  static Result<ChunkDecoder> parse(ByteView prefix, const DecodeParams& environment = {});

  /// The same for blocks of variable length, of which parse() wants to see the whole chunk: with what each of them
  /// begins with, tables_size() bytes are enough.
  static std::uint64_t tables_size(const ChunkHeader& header);
  static Result<ChunkDecoder> parse_vl(ByteView tables, std::span<const std::int32_t> lengths,
                                       const DecodeParams& environment = {});

  /// A chunk that is not stored at all: `nbytes` of zeros, NaN (typesize 4 or 8, else unsupported) or uninitialised
  /// bytes (which read as zeros). REQUIRES: value is one of these three, nbytes >= 0.
  static Result<ChunkDecoder> special(SpecialValue value, std::int32_t nbytes, std::int32_t typesize);

  const ChunkHeader& header() const { return header_; }
  std::uint32_t nbytes() const { return static_cast<std::uint32_t>(header_.nbytes); }

  /// All bytes are zero, and known to be so without decoding (zeros and uninitialised).
  bool is_zeros() const;

  /// Blocks as the decoder serves them: those of the format, except that memcpyed and special chunks, which have none
  /// that matter, come in pieces of 64 KiB. 0 only if nbytes is 0.
  std::uint32_t block_count() const { return block_count_; }
  ByteRange block_range(std::uint32_t block) const;   // inner offsets
  std::uint32_t block_at(std::uint32_t inner) const;  // REQUIRES: inner < nbytes()
  /// Stored bytes that block needs: its streams up to the next block's start, but no more than streams that are stored
  /// as they are would take. Empty for special chunks. For a memcpyed
  /// chunk exactly the plain bytes.
  ByteRange stored_range(std::uint32_t block) const;

  /// Delta chunks: decoding a block other than 0 needs the plain bytes of block 0.
  bool needs_reference() const { return needs_reference_; }

  /// Decodes `block` from `stored` (the bytes of stored_range(block)) into `out` (block_range(block).size() bytes).
  /// `reference`: plain block 0, where needs_reference() and block > 0; else ignored.
  Result<void> decode_block(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan out,
                            ByteView reference = {}) const;

  /// The bytes that the block is made of, over and over, where its streams are runs and tell that without being
  /// decoded; else empty. `stored`: as for decode_block().
  std::vector<std::uint8_t> repeated_bytes(std::uint32_t block, ByteView stored) const;

  /// Whether decode_partial() serves this block, and costs less than decode_block() does.
  bool decodes_partial(std::uint32_t block) const;

  /// Bytes [begin, begin + out.size()) of `block` alone, `begin` counted from its first. Its streams are decoded and
  /// checked as for the whole block; what is spared is undoing the filters of what nobody asked for, and the memory.
  /// `stored`: as for decode_block(). REQUIRES: decodes_partial(block).
  Result<void> decode_partial(DecodeContext& context, std::uint32_t block, ByteView stored, std::uint32_t begin,
                              ByteSpan out) const;

 private:
  ChunkDecoder() = default;
  Result<void> parse_blocks(ByteView prefix, const DecodeParams& environment);
  Result<void> parse_lengths(std::span<const std::int32_t> lengths);
  void cut_slack();
  bool borrows_tail(std::uint32_t block) const;
  StreamCodec stream_codec() const;
  Result<void> parse_streams(std::uint32_t block, ByteView stored, BlockStreams& streams) const;
  Result<void> decode_streams(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan out,
                              ByteView reference) const;
  Result<void> restore_tail(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan filtered) const;
  friend Result<void> decode_range(DecodeContext& context, const ChunkDecoder& decoder, ByteView chunk,
                                   std::uint32_t begin, ByteSpan out);

  // How the plain bytes come about. A pattern is a special value: nothing but value_, over and over.
  enum class Kind : std::uint8_t { pattern, memcpyed, streams };

  ChunkHeader header_;
  Kind kind_ = Kind::pattern;
  std::uint32_t block_count_ = 0;
  bool needs_reference_ = false;
  BlockGeometry geometry_;                 // blocksize: 64 KiB where there are no blocks that matter
  std::vector<StoredBlock> blocks_;        // of Kind::streams
  std::vector<std::uint32_t> vl_offsets_;  // of variable-length blocks: where each begins, and nbytes
  std::vector<std::uint8_t> value_;        // of a pattern; empty: zeros
  FilterDecoder pipeline_;
  std::shared_ptr<const Dictionary> dictionary_;
  std::vector<std::int32_t> blockshape_;  // of an array's block, where the codec is a registered one
};

/// Decodes inner bytes [begin, begin + out.size()) of a chunk that lies wholly in memory, touching no block that the
/// range does not (but block 0 where delta needs it). `chunk`: at least header.cbytes bytes.
Result<void> decode_range(DecodeContext& context, const ChunkDecoder& decoder, ByteView chunk, std::uint32_t begin,
                          ByteSpan out);

}  // namespace cframefs::codec
