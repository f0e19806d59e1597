// The header of a Blosc1 or Blosc2 chunk, parsed and checked for contradictions.
//
// Format: chunk.md sections 1 and 10 (16-byte header of Blosc1, 32-byte header of Blosc2). All lengths are bytes.
// Thread safety: plain values. Errors: corruption (a field contradicts another), unsupported (unknown version or flags
// bits).
#pragma once

#include <array>
#include <cstdint>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

inline constexpr std::size_t kMinHeaderLength = 16;
inline constexpr std::size_t kExtendedHeaderLength = 32;
inline constexpr std::int32_t kMaxChunkBytes = 0x7fffffff - 32;
inline constexpr std::int32_t kMaxBlockBytes = 536866816;
inline constexpr std::int32_t kMaxDictionaryBytes = 32768;
inline constexpr int kFilterSlots = 6;

/// Bits 5 to 7 of the flags byte: the format of the streams (codecs.md section 1).
enum class CodecFormat : std::uint8_t { blosclz, lz4, snappy, zlib, zstd, reserved, registered, superchunk };

/// Bits 4 to 6 of blosc2_flags: the whole chunk repeats one value (chunk.md section 5).
enum class SpecialValue : std::uint8_t { none, zeros, nan, repeated, uninitialised };

/// Filter ids of the pipeline (filters.md section 1).
enum class FilterId : std::uint8_t {
  none = 0,
  shuffle = 1,
  bitshuffle = 2,
  delta = 3,
  trunc_prec = 4,
  ndcell = 32,
  ndmean = 33,
  bytedelta_old = 34,
  bytedelta = 35,
  int_trunc = 36,
};

struct ChunkHeader {
  std::uint8_t version = 0;
  std::uint8_t flags = 0;
  std::int32_t typesize = 0;   // 1..255; 1 for items wider than 255 bytes
  std::int32_t nbytes = 0;     // uncompressed length
  std::int32_t blocksize = 0;  // uncompressed length of a block; for variable-length blocks their number
  std::int32_t cbytes = 0;     // stored length, header included
  std::uint32_t length = 0;    // of the header itself: 16 or 32

  // With a 16-byte header these are derived from `flags`.
  std::array<std::uint8_t, kFilterSlots> filters{};
  std::array<std::uint8_t, kFilterSlots> filters_meta{};
  std::uint8_t compcode = 0;       // compressor code, meaningful when format is registered
  std::uint8_t compcode_meta = 0;  // parameter of a registered codec

  CodecFormat format = CodecFormat::blosclz;
  SpecialValue special = SpecialValue::none;
  bool memcpyed = false;      // the payload is the uncompressed bytes
  bool dont_split = false;    // every block is one stream
  bool dictionary = false;    // a dictionary follows the block starts
  bool vl_blocks = false;     // blocks of variable length
  bool instrumented = false;  // streams hold statistics, not data

  bool extended() const { return length == kExtendedHeaderLength; }
};

/// Parses the header at the start of `bytes`; 32 bytes are enough, whatever the chunk's length.
Result<ChunkHeader> parse_chunk_header(ByteView bytes);

}  // namespace cframefs::codec
