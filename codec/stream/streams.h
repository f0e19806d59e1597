// The streams of one block: what stands in the stored bytes, and the plain bytes that they decode to, filters still on.
//
// Format: chunk.md section 4.1. Units: bytes. Thread safety: a value of one thread. It points into the stored bytes,
// which must outlive it. Errors: corruption; unsupported from the codec.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/filter/shuffle.h"
#include "codec/stream/stream_decoders.h"

namespace cframefs::codec {

inline constexpr std::uint32_t kMaxStreams = 255;

class BlockStreams {
 public:
  /// `stored`: from the first stream on; may go on beyond the last one. `plain`: length of the block; `count` streams
  /// share it evenly. `runs`: lengths of 0 and below are known, as they are behind a 32-byte header.
  /// REQUIRES: 1 <= count <= kMaxStreams, plain >= 1.
  Result<void> parse(ByteView stored, std::uint32_t count, std::uint32_t plain, bool runs, CodecFormat format);

  /// A block of variable length: one stream of all the bytes behind its length field (chunk.md section 6).
  Result<void> parse_vl(ByteView stored, std::uint32_t plain, CodecFormat format);

  /// Every stream is a run of zeros.
  bool all_zeros() const;

  /// The bytes that the streams are runs of; empty if one of them is none.
  std::vector<std::uint8_t> run_values() const;

  /// `out`: as many bytes as the block has.
  Result<void> decode(DecodeContext::DecoderState& states, const StreamCodec& codec, ByteSpan out) const;

  std::uint32_t count() const { return count_; }

  /// The streams as planes: those that are plain where they lie, the others decoded into their places in `scratch`,
  /// which is as long as the block. `planes`: as many as there are streams.
  Result<void> decode_planes(DecodeContext::DecoderState& states, const StreamCodec& codec, ByteSpan scratch,
                             std::span<Plane> planes) const;

 private:
  struct Stream {
    enum class Kind : std::uint8_t { run, raw, coded };
    Kind kind;
    std::uint8_t value;  // of a run
    const std::uint8_t* payload;
    std::uint32_t size;
  };

  Result<void> decode_coded(DecodeContext::DecoderState& states, const StreamCodec& codec, std::uint32_t stream,
                            ByteSpan place) const;

  std::uint32_t count_ = 0;
  std::uint32_t length_ = 0;  // plain bytes of each stream
  // Only the first count_ are ever set; setting all of them would cost more than decoding a small block.
  std::array<Stream, kMaxStreams> streams_;
};

}  // namespace cframefs::codec
