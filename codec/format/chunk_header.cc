#include "codec/format/chunk_header.h"

#include <algorithm>
#include <string>

#include <fmt/core.h>

#include "codec/format/block_geometry.h"

namespace cframefs::codec {
namespace {

// Bits of the flags byte (chunk.md section 1.2).
constexpr std::uint8_t kByteShuffle = 0x01;
constexpr std::uint8_t kMemcpyed = 0x02;
constexpr std::uint8_t kBitShuffle = 0x04;
constexpr std::uint8_t kDelta = 0x08;
constexpr std::uint8_t kDontSplit = 0x10;
constexpr std::uint8_t kExtendedMark = kByteShuffle | kBitShuffle;

// Bits of blosc2_flags (section 1.3) and blosc2_flags2.
constexpr std::uint8_t kDictionary = 0x01;
constexpr std::uint8_t kLazy = 0x08;
constexpr std::uint8_t kInstrumented = 0x80;
constexpr std::uint8_t kVlBlocks = 0x01;

constexpr std::uint8_t kNewestVersion = 6;

std::string number(std::int64_t value) {
  return std::to_string(value);
}

// Derives the filter pipeline from the flags of a 16-byte header (section 1.2).
Result<void> derive_pipeline(ChunkHeader& header) {
  if (header.flags & kDelta) {
    if (header.version <= 2) return unsupported("flag 0x08 in a Blosc1 chunk");
    header.filters[4] = static_cast<std::uint8_t>(FilterId::delta);
  }
  if (header.flags & kByteShuffle) header.filters[5] = static_cast<std::uint8_t>(FilterId::shuffle);
  if (header.flags & kBitShuffle) header.filters[5] = static_cast<std::uint8_t>(FilterId::bitshuffle);
  return {};
}

// Reads bytes 0x10 to 0x1f.
Result<void> read_extension(ByteView bytes, ChunkHeader& header) {
  std::copy_n(bytes.begin() + 0x10, kFilterSlots, header.filters.begin());
  std::copy_n(bytes.begin() + 0x18, kFilterSlots, header.filters_meta.begin());
  header.compcode = bytes[0x16];
  header.compcode_meta = bytes[0x17];
  if (header.version <= 3) {
    // These versions have five slots; the sixth was never initialised (legacy-frame.md section 8).
    header.filters[5] = 0;
    header.filters_meta[5] = 0;
  }

  const std::uint8_t flags2 = bytes[0x1e];
  if (flags2 & ~kVlBlocks) return unsupported("unknown bits in blosc2_flags2: " + number(flags2));
  header.vl_blocks = (flags2 & kVlBlocks) != 0;

  const std::uint8_t flags = bytes[0x1f];
  if (flags & kLazy) return corrupt("the lazy flag is set, which stored chunks never have");
  header.dictionary = (flags & kDictionary) != 0;
  header.instrumented = (flags & kInstrumented) != 0;
  const int special = (flags >> 4) & 7;
  if (special > static_cast<int>(SpecialValue::uninitialised)) {
    return corrupt("special value " + number(special) + " does not exist");
  }
  header.special = static_cast<SpecialValue>(special);
  return {};
}

Result<void> check_fields(const ChunkHeader& header) {
  if (header.typesize == 0) return corrupt("typesize is 0, allowed are 1 to 255");
  if (header.nbytes < 0 || header.nbytes > kMaxChunkBytes) {
    return corrupt("nbytes " + number(header.nbytes) + " is not in 0 to " + number(kMaxChunkBytes));
  }
  if (header.blocksize <= 0 || (!header.vl_blocks && header.blocksize > kMaxBlockBytes)) {
    return corrupt("blocksize " + number(header.blocksize) + " is not in 1 to " + number(kMaxBlockBytes));
  }
  if (header.cbytes < static_cast<std::int64_t>(header.length)) {
    return corrupt("cbytes " + number(header.cbytes) + " is less than the header of " + number(header.length));
  }
  return {};
}

Result<void> check_special(const ChunkHeader& header) {
  if (header.memcpyed) return corrupt("the chunk is marked both memcpyed and special");
  if (header.vl_blocks) return corrupt("the chunk is marked both special and of variable-length blocks");
  const std::int64_t stored = std::int64_t{header.cbytes} - header.length;
  switch (header.special) {
    case SpecialValue::none:
    case SpecialValue::zeros:
      return {};
    case SpecialValue::repeated:
      if (stored < 1 || stored > header.nbytes || header.nbytes % stored != 0) {
        return corrupt("a repeated value of " + number(stored) + " bytes does not fill nbytes " +
                       number(header.nbytes));
      }
      return {};
    case SpecialValue::nan:
      if (header.typesize != 4 && header.typesize != 8) {
        return unsupported("NaN of typesize " + number(header.typesize));
      }
      [[fallthrough]];
    case SpecialValue::uninitialised:
      if (header.nbytes % header.typesize != 0) {
        return corrupt("nbytes " + number(header.nbytes) + " of a special chunk is no multiple of typesize " +
                       number(header.typesize));
      }
      return {};
  }
  return {};
}

Result<void> check_memcpyed(const ChunkHeader& header) {
  if (header.vl_blocks) return corrupt("the chunk is marked both memcpyed and of variable-length blocks");
  const std::int64_t before = std::int64_t{header.cbytes} - header.nbytes;
  // Old releases put the payload at offset 32 even with a 16-byte header (chunk.md section 2).
  if (before == kExtendedHeaderLength || before == static_cast<std::int64_t>(header.length)) return {};
  return corrupt("cbytes " + number(header.cbytes) + " of a memcpyed chunk is not nbytes " + number(header.nbytes) +
                 " plus a header");
}

Result<void> check_layout(const ChunkHeader& header) {
  const bool is_plain = header.special == SpecialValue::none || header.special == SpecialValue::zeros;
  // The reference marks an empty chunk both memcpyed and zeros if it was to use a dictionary.
  if (header.nbytes == 0 && is_plain && !header.vl_blocks) return {};
  if (header.special != SpecialValue::none) return check_special(header);
  if (header.memcpyed) return check_memcpyed(header);
  if (header.vl_blocks && header.blocksize > header.nbytes) {
    return corrupt(number(header.blocksize) + " variable-length blocks cannot share " + number(header.nbytes) +
                   " bytes");
  }
  const BlockGeometry geometry = block_geometry(header);
  if (header.length + 4 * std::uint64_t{geometry.count} > static_cast<std::uint64_t>(header.cbytes)) {
    return corrupt("the starts of " + number(geometry.count) + " blocks do not fit into the chunk");
  }
  return {};
}

}  // namespace

Result<ChunkHeader> parse_chunk_header(ByteView bytes) {
  if (bytes.size() < kMinHeaderLength)
    return corrupt(fmt::format("{} bytes are too few for a chunk header of 16", bytes.size()));
  ChunkHeader header;
  header.version = bytes[0];
  header.flags = bytes[2];
  header.typesize = bytes[3];
  header.nbytes = load_le<std::int32_t>(&bytes[0x04]);
  header.blocksize = load_le<std::int32_t>(&bytes[0x08]);
  header.cbytes = load_le<std::int32_t>(&bytes[0x0c]);
  header.format = static_cast<CodecFormat>(header.flags >> 5);
  header.memcpyed = (header.flags & kMemcpyed) != 0;
  header.dont_split = (header.flags & kDontSplit) != 0;
  if (header.version == 0 || header.version > kNewestVersion) {
    return unsupported("chunk format version " + number(header.version));
  }

  const bool extended = (header.flags & kExtendedMark) == kExtendedMark;
  header.length = extended ? kExtendedHeaderLength : kMinHeaderLength;
  if (bytes.size() < header.length)
    return corrupt(fmt::format("{} bytes are too few for a chunk header of 32", bytes.size()));
  const Result<void> pipeline = extended ? read_extension(bytes, header) : derive_pipeline(header);
  if (!pipeline) return Failure(pipeline.error());

  if (Result<void> checked = check_fields(header); !checked) return Failure(checked.error());
  if (Result<void> checked = check_layout(header); !checked) return Failure(checked.error());
  // C-Blosc2 leaves the bit set when it gives up compressing, although there is no dictionary then (chunk.md, traps).
  if (header.memcpyed || header.special != SpecialValue::none) header.dictionary = false;
  if (header.special == SpecialValue::zeros) header.memcpyed = false;
  return header;
}

}  // namespace cframefs::codec
