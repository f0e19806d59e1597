// The streams of one block: their positions in the stored bytes, and their decoding to filtered bytes.
//
// Format: chunk.md section 4.1. Units: bytes. Thread safety: one thread per object. Ownership: points into the stored
// bytes, which must outlive the object. Errors: corruption; unsupported from the codec.
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

// NOLINTNEXTLINE(cppcoreguidelines-pro-type-member-init): streams_ says why
class BlockStreams {
 public:
  /// Parses `count` streams. `stored`: begins with the first stream and may extend past the last one. `plain`:
  /// uncompressed length of the block, divided evenly among the streams. `runs`: stream lengths of 0 and below mean
  /// runs, as they do with a 32-byte header. REQUIRES: 1 <= count <= kMaxStreams, plain >= 1.
  Result<void> parse(ByteView stored, std::uint32_t count, std::uint32_t plain, bool runs, const StreamCodec& codec);

  /// Parses a variable-length block: one stream of all bytes after the length field (chunk.md section 6).
  Result<void> parse_vl(ByteView stored, std::uint32_t plain, const StreamCodec& codec);

  /// Returns true if every stream is a run of zeros.
  bool all_zeros() const;

  /// Returns the value of each stream if all streams are runs; else an empty vector.
  std::vector<std::uint8_t> run_values() const;

  /// Decodes all streams. `out`: as many bytes as the block has.
  Result<void> decode(CodecStates& states, const StreamCodec& codec, ByteSpan out) const;

  std::uint32_t count() const { return count_; }

  /// Sets `planes`, one per stream. Uncompressed streams are used in place; the others are decoded to their positions
  /// in `scratch`, which is as long as the block.
  Result<void> decode_planes(CodecStates& states, const StreamCodec& codec, ByteSpan scratch,
                             std::span<Plane> planes) const;

 private:
  struct Stream {
    enum class Kind : std::uint8_t { run, raw, coded };
    Kind kind;
    std::uint8_t value;  // of a run
    const std::uint8_t* payload;
    std::uint32_t size;
  };

  Result<void> decode_coded(CodecStates& states, const StreamCodec& codec, std::uint32_t stream, ByteSpan place) const;

  std::uint32_t count_ = 0;
  std::uint32_t length_ = 0;  // uncompressed bytes of each stream
  // Only the first count_ elements are initialised: initialising all would cost more than decoding a small block.
  std::array<Stream, kMaxStreams> streams_;
};

}  // namespace cframefs::codec
