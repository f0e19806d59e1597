// A chunk of a container made ready to be read: its header and block starts are in memory, its blocks are fetched and
// decoded when asked for.
//
// Thread safety: immutable, const members may run at once with a DecodeContext each. Ownership: shares the source.
// Errors: those of codec and of the source, with chunk number and file offset filled in.
#pragma once

#include <memory>
#include <span>

#include "codec/chunk_decoder.h"
#include "frame/container/container.h"

namespace cframefs::frame {

class ChunkReader {
  struct Private {};

 public:
  /// For open() alone.
  ChunkReader(Private, ChunkNumber chunk, ChunkLocation place, codec::ChunkDecoder decoder);

  /// Reads and checks header and block starts of `chunk` (usually one short read), and that its plain length is what
  /// the container expects. Chunks that are not stored are served too.
  static Result<std::shared_ptr<const ChunkReader>> open(const Container& container, ChunkNumber chunk);

  ChunkNumber chunk() const { return chunk_; }
  const codec::ChunkDecoder& decoder() const { return decoder_; }
  /// Memory that this object holds, for caches that charge it.
  std::size_t footprint() const;

  /// Decodes blocks first, first + 1, … one into each of `outs` (sizes as decoder().block_range()). Neighbouring stored
  /// ranges are fetched with one read. `reference`: plain block 0 where decoder().needs_reference(); may be empty if
  /// first is 0, for then it is taken from outs[0].
  Result<void> decode(codec::DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                      ByteView reference) const;

  /// Bytes [begin, begin + out.size()) of one block alone, see codec::ChunkDecoder::decode_partial(). REQUIRES:
  /// decoder().decodes_partial(block).
  Result<void> decode_partial(codec::DecodeContext& context, std::uint32_t block, std::uint32_t begin,
                              ByteSpan out) const;

  /// Plain bytes straight from the source, for memcpyed chunks: no block, no scratch. REQUIRES: decoder().header()
  /// .memcpyed, inner + out.size() <= nbytes.
  Result<void> read_plain(std::uint32_t inner, ByteSpan out) const;

  /// Upper bound of the scratch bytes (stored bytes plus filters) that decoding these blocks takes.
  std::uint64_t scratch_bytes(std::uint32_t first, std::uint32_t count) const;

 private:
  Result<void> decode_stored(codec::DecodeContext& context, std::uint32_t first, std::span<const ByteSpan> outs,
                             ByteView reference) const;
  Result<void> decode_plain(std::uint32_t first, std::span<const ByteSpan> outs) const;
  std::uint32_t group_end(std::uint32_t first, std::uint32_t end) const;
  Result<void> read_stored(const codec::ByteRange& range, ByteSpan into) const;
  Result<void> verify() const;
  Error located(Error error) const;

  const ChunkNumber chunk_;
  const ChunkLocation place_;
  const codec::ChunkDecoder decoder_;
};

/// Decodes a whole chunk into `out` (decoder().nbytes() bytes).
Result<void> decode_whole(codec::DecodeContext& context, const ChunkReader& reader, ByteSpan out);

}  // namespace cframefs::frame
