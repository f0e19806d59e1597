// An open chunk of a container: header and block starts are in memory, blocks are read and decoded on request.
//
// Thread safety: immutable; const members may run concurrently, each with its own DecodeContext. Ownership: shares the
// source. Errors: those of codec and of the source, with chunk number and file offset set. If the chunk has digests,
// every member that returns bytes of it, decoded or as stored, verifies them first (corruption): the whole chunk, or
// with a digest for each block the blocks that it reads.
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/chunk_decoder.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// How the uncompressed bytes of a chunk are obtained.
enum class Storage : std::uint8_t {
  zeros,   // all are zero: nothing needs to be read
  raw,     // stored uncompressed: ChunkReader::read_plain() reads any of them
  blocks,  // decoded block by block
};

class ChunkReader {
  struct Private {};

 public:
  /// Private to open().
  ChunkReader(Private, ChunkNumber chunk, ChunkLocation location, codec::ChunkDecoder decoder, ChunkDigests digests);

  /// Reads header and block starts of `chunk` (usually one short read), and checks them and that the uncompressed
  /// length is the one that the container expects. Works for chunks that are not stored, too. `soon`: inner bytes that
  /// the caller reads next; a source on a server is asked for them, too, before their place is known.
  static Result<std::shared_ptr<const ChunkReader>> open(const Container& container, ChunkNumber chunk,
                                                         const std::optional<codec::ByteRange>& soon = std::nullopt);

  ChunkNumber chunk() const { return chunk_; }
  const codec::ChunkDecoder& decoder() const { return decoder_; }
  Storage storage() const;
  /// Returns the memory that this object holds, for caches that charge it.
  std::size_t footprint() const;

  /// Returns whether the stored bytes come from a server.
  bool is_remote() const { return location_.source && location_.source->is_remote(); }
  /// Waits until blocks first to first + count - 1 can be read without waiting for a server, if the source is on one:
  /// callers that hold memory or turns for decoding wait before they take these. Returns the error that decoding would
  /// meet.
  Result<void> fetch(std::uint32_t first, std::uint32_t count) const;

  /// Decodes blocks first, first + 1, … one into each of `outs` (sizes as decoder().block_range()). Reads neighbouring
  /// stored ranges together. `reference`: plain block 0 if decoder().needs_reference(); may be empty if first is 0, for
  /// then outs[0] is used.
  Result<void> decode(codec::DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                      ByteView reference) const;

  /// Decodes bytes [begin, begin + out.size()) of one block, see codec::ChunkDecoder::decode_partial(). REQUIRES:
  /// decoder().decodes_partial(block).
  Result<void> decode_partial(codec::DecodeContext& context, std::uint32_t block, std::uint32_t begin,
                              ByteSpan out) const;

  /// Reads bytes directly from the source into `out`, without scratch memory. REQUIRES: storage() is raw, inner +
  /// out.size() <= nbytes.
  Result<void> read_plain(std::uint32_t inner, ByteSpan out) const;

  /// Returns the length of the chunk as stored, header included; 0 if the chunk is not stored.
  std::uint64_t stored_bytes() const;
  /// Reads bytes [from, from + out.size()) of the chunk as stored. invalid: the range ends past stored_bytes().
  Result<void> read_stored(std::uint64_t from, ByteSpan out) const;

  /// Returns the digests of the chunk as stored, for the place of chunk `as` in a frame. Does not verify it.
  Result<std::vector<std::uint64_t>> compute_digests(ChunkNumber as) const;

  /// Returns an upper bound of the scratch bytes (stored bytes plus filter buffers) that decoding these blocks needs.
  std::uint64_t scratch_bytes(std::uint32_t first, std::uint32_t count) const;

 private:
  Result<void> decode_stored(codec::DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                             ByteView reference) const;
  Result<void> decode_plain(std::uint32_t first, std::span<const ByteSpan> outs) const;
  std::uint32_t group_end(std::uint32_t first, std::uint32_t end) const;
  codec::ByteRange group_range(std::uint32_t first, std::uint32_t stop) const;
  Result<void> read_range(const codec::ByteRange& range, ByteSpan into) const;
  Result<void> verify() const;
  Result<void> verify_blocks() const;
  Result<void> check_all(const std::vector<std::uint64_t>& found) const;
  Result<void> check_block(std::uint32_t block, ByteView stored) const;
  Result<void> check_raw(std::uint32_t inner, ByteView plain) const;
  bool is_verified(std::uint32_t block) const;
  void note_verified(std::uint32_t block) const;
  Error located(Error error) const;

  const ChunkNumber chunk_;
  const ChunkLocation location_;
  const codec::ChunkDecoder decoder_;
  const ChunkDigests digests_;
  mutable std::atomic<bool> is_whole_verified_ = false;
  mutable std::vector<std::atomic<bool>> verified_;  // units of a raw chunk that has digests
};

/// Decodes a whole chunk into `out` (decoder().nbytes() bytes).
Result<void> decode_whole(codec::DecodeContext& context, const ChunkReader& reader, ByteSpan out);

}  // namespace cframefs::frame
