// Parses and validates a chunk once, then decodes any of its blocks into the caller's memory.
//
// The decoder does not need the whole chunk in memory: parse() needs a prefix (header, block starts, dictionary), and
// decoding a block needs only the stored bytes of that block. A read of 4 KiB of a 16 MiB chunk on disk thus reads two
// short ranges.
//
// "Inner" offsets count uncompressed bytes from the start of the decoded chunk; "stored" offsets count bytes from the
// first byte of the chunk header; "plain" bytes are uncompressed bytes. Format: chunk.md sections 2 to 7.
//
// Thread safety: immutable after parse(); const members may run concurrently, each call with its own DecodeContext.
// Ownership: keeps no pointer into the prefix (a dictionary is copied).
// Errors: corruption, unsupported; a failed decode may have written any part of `out`, and nothing outside it.
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
class Dictionary;
struct StreamCodec;

struct ByteRange {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t size() const { return end - begin; }
};

class ChunkDecoder {
 public:
  /// Returns how many bytes from the chunk's start parse() needs, at most header.cbytes. Chunks with variable-length
  /// blocks need all of them.
  static std::uint64_t prefix_size(const ChunkHeader& header);

  /// Parses a chunk. `prefix`: at least its first prefix_size() bytes.
  static Result<ChunkDecoder> parse(ByteView prefix, const DecodeParams& params = {});

  /// Returns how many bytes from the chunk's start parse_vl() needs: header, block starts, dictionary.
  static std::uint64_t tables_size(const ChunkHeader& header);
  /// Parses a chunk with variable-length blocks from its first tables_size() bytes. `lengths`: the length field at the
  /// start of each stored block, which parse() would read from the whole chunk.
  static Result<ChunkDecoder> parse_vl(ByteView tables, std::span<const std::int32_t> lengths,
                                       const DecodeParams& params = {});

  /// Returns the decoder of a chunk that is not stored: `nbytes` of zeros, NaN (typesize 4 or 8, else unsupported) or
  /// uninitialised bytes (which read as zeros). REQUIRES: value is one of these three, nbytes >= 0.
  static Result<ChunkDecoder> special(SpecialValue value, std::int32_t nbytes, std::int32_t typesize);

  const ChunkHeader& header() const { return header_; }
  std::uint32_t nbytes() const { return static_cast<std::uint32_t>(header_.nbytes); }

  /// Returns true if all bytes are known to be zero without decoding (special values zeros and uninitialised).
  bool is_zeros() const;

  /// Returns the number of blocks: those of the format, or blocks of 64 KiB for memcpyed and special chunks. 0 only if
  /// nbytes is 0.
  std::uint32_t block_count() const { return block_count_; }
  ByteRange block_range(std::uint32_t block) const;   // inner offsets
  std::uint32_t block_at(std::uint32_t inner) const;  // REQUIRES: inner < nbytes()
  /// Returns the stored bytes that decoding the block needs: its streams up to the next block's start, but at most 64
  /// bytes more than uncompressed streams would take; with filter 34 perhaps also the previous block. Empty for special
  /// chunks; for a memcpyed chunk exactly the plain bytes.
  ByteRange stored_range(std::uint32_t block) const;

  /// Returns true if decoding a block other than 0 needs the plain bytes of block 0 (filter delta).
  bool needs_reference() const { return needs_reference_; }

  /// Decodes `block` from `stored` (the bytes of stored_range(block)) into `out` (block_range(block).size() bytes).
  /// `reference`: plain block 0 if needs_reference() and block > 0, else ignored.
  Result<void> decode_block(DecodeContext& context, std::uint32_t block, ByteView stored, ByteSpan out,
                            ByteView reference = {}) const;

  /// Returns the bytes that the block repeats, if all its streams are runs and the pattern is known without decoding;
  /// else an empty vector. `stored`: as for decode_block().
  std::vector<std::uint8_t> repeated_bytes(std::uint32_t block, ByteView stored) const;

  /// Returns true if decode_partial() can decode parts of this block, which then costs less than decode_block().
  bool decodes_partial(std::uint32_t block) const;

  /// Decodes bytes [begin, begin + out.size()) of `block`; `begin` counts from the block's first byte. Decodes and
  /// checks the streams of the whole block, but undoes the filters only for the requested bytes and needs no memory for
  /// the others. `stored`: as for decode_block(). REQUIRES: decodes_partial(block).
  Result<void> decode_partial(DecodeContext& context, std::uint32_t block, ByteView stored, std::uint32_t begin,
                              ByteSpan out) const;

 private:
  ChunkDecoder() = default;
  Result<void> parse_blocks(ByteView prefix, const DecodeParams& params);
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

  // How the chunk stores its bytes. pattern: a special value, value_ repeated.
  enum class Kind : std::uint8_t { pattern, memcpyed, streams };

  ChunkHeader header_;
  Kind kind_ = Kind::pattern;
  std::uint32_t block_count_ = 0;
  bool needs_reference_ = false;
  BlockGeometry geometry_;                 // blocksize: 64 KiB for memcpyed and special chunks
  std::vector<StoredBlock> blocks_;        // of Kind::streams
  std::vector<std::uint32_t> vl_offsets_;  // of variable-length blocks: begin of each, then nbytes
  std::vector<std::uint8_t> value_;        // of a pattern; empty: zeros
  FilterDecoder pipeline_;
  std::shared_ptr<const Dictionary> dictionary_;
  std::vector<std::int32_t> blockshape_;  // of an array's block, if the codec is a registered one
};

/// Decodes inner bytes [begin, begin + out.size()) of a chunk that is wholly in memory. Decodes only the blocks that
/// the range touches, and block 0 if delta needs it. `chunk`: at least header.cbytes bytes.
Result<void> decode_range(DecodeContext& context, const ChunkDecoder& decoder, ByteView chunk, std::uint32_t begin,
                          ByteSpan out);

}  // namespace cframefs::codec
