#include "frame/cframe/frame_header.h"

#include <algorithm>
#include <limits>
#include <numeric>
#include <span>
#include <string>

#include <fmt/core.h>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::load_be;
using codec::unsupported;
using namespace layout;

std::string hex(std::size_t value) {
  static constexpr char digits[] = "0123456789abcdef";
  std::string text;
  do {
    text.insert(text.begin(), digits[value & 15]);
    value >>= 4;
  } while (value != 0);
  return "0x" + text;
}

/// Checks the number of fields: 14 since 2.0.0-rc1, 11 to 13 before.
Result<void> check_generation(std::uint8_t marker) {
  if ((marker & 0xf0) == 0x90) {
    switch (marker & 0x0f) {
      case 11:
      case 12:
      case 13:
        return unsupported("frame of a Blosc2 2.0 beta, which is not supported here");
      case 14:
        return {};
      default:
        break;
    }
  }
  return corrupt("frame header begins with " + hex(marker) + ", must be 0x9e");
}

Result<void> check_markers(ByteView bytes) {
  struct Marker {
    std::size_t at;
    std::uint8_t value;
  };
  static constexpr Marker markers[] = {
      {kHeaderLengthAt - 1, kInt32},  {kFrameLengthAt - 1, kUint64}, {kFlagsMarkerAt, kFixString4},
      {kNbytesAt - 1, kInt64},        {kCbytesAt - 1, kInt64},       {kTypesizeAt - 1, kInt32},
      {kBlocksizeAt - 1, kInt32},     {kChunksizeAt - 1, kInt32},    {kEncodeThreadsAt - 1, kInt16},
      {kDecodeThreadsAt - 1, kInt16}, {kFilterMarkerAt, kFixExt16},
  };
  for (const Marker& marker : markers) {
    if (bytes[marker.at] != marker.value) {
      return corrupt("frame header has " + hex(bytes[marker.at]) + " at " + hex(marker.at) + ", must be " +
                     hex(marker.value));
    }
  }
  return {};
}

Result<int> frame_version(std::uint8_t general_flags) {
  const int version = general_flags & kVersionMask;
  if (version < kFirstFrameVersion || version > kLastFrameVersion) {
    return unsupported(fmt::format("frame format version {}, supported are {} and {}", version, kFirstFrameVersion,
                                   kLastFrameVersion));
  }
  if ((general_flags & kOffsetWidthMask) != kOffsetWidth64) {
    return unsupported("index offsets do not have 64 bits");
  }
  return version;
}

/// Returns the number of chunks by the header, or -1 if only the index tells it.
Result<std::int64_t> header_chunk_count(const FrameParameters& parameters) {
  if (parameters.nbytes == 0) return 0;
  if (parameters.chunksize < 0)
    return corrupt(fmt::format("frame holds {} uncompressed bytes, but its chunk size is {}", parameters.nbytes,
                               parameters.chunksize));
  if (parameters.chunksize == 0) return -1;
  if (parameters.chunksize > codec::kMaxChunkBytes) {
    return corrupt(fmt::format("chunk size {}, at most {} is allowed", parameters.chunksize, codec::kMaxChunkBytes));
  }
  const auto chunksize = static_cast<std::uint64_t>(parameters.chunksize);
  const std::uint64_t count = (parameters.nbytes - 1) / chunksize + 1;
  if (count > static_cast<std::uint64_t>(codec::kMaxChunkBytes) / sizeof(std::int64_t)) {
    return corrupt(fmt::format("frame of {} chunks, more than an index can hold", count));
  }
  return static_cast<std::int64_t>(count);
}

void read_defaults(ByteView bytes, FrameParameters& parameters) {
  const std::uint8_t codec_byte = bytes[kCodecAt];
  const std::uint8_t nibble = codec_byte & 0x0f;
  parameters.compcode = nibble < kCodecElsewhere ? nibble : bytes[kCompcodeAt];
  parameters.compcode_meta = bytes[kCompcodeMetaAt];
  parameters.clevel = codec_byte >> 4;
  parameters.split_mode = static_cast<std::uint8_t>((bytes[kSplitModeAt] & 3) + 1);
  std::copy_n(bytes.begin() + kFiltersAt, codec::kFilterSlots, parameters.filters.begin());
  std::copy_n(bytes.begin() + kFiltersMetaAt, codec::kFilterSlots, parameters.filters_meta.begin());
  parameters.blocksize = load_be<std::int32_t>(&bytes[kBlocksizeAt]);
  parameters.vl_blocks = (bytes[kGeneralFlagsAt] & kVlBlocksFlag) != 0;
  parameters.use_dict = (bytes[kOtherFlagsAt] & 1) != 0;
}

}  // namespace

bool has_frame_magic(ByteView bytes) {
  if (bytes.size() < kMagicAt + kMagic.size()) return false;
  return std::equal(kMagic.begin(), kMagic.end(), bytes.begin() + kMagicAt);
}

Result<FrameHeader> parse_fixed_header(ByteView bytes) {
  if (!has_frame_magic(bytes)) return corrupt("not a Blosc2 frame: the magic is missing");
  if (auto known = check_generation(bytes[kArrayMarkerAt]); !known) return codec::Failure(known.error());
  if (bytes.size() < kFixedHeaderLength) {
    return corrupt(fmt::format("frame is truncated inside its header, after {} bytes", bytes.size()));
  }
  if (auto markers = check_markers(bytes); !markers) return codec::Failure(markers.error());
  const auto version = frame_version(bytes[kGeneralFlagsAt]);
  if (!version) return codec::Failure(version.error());

  FrameHeader header;
  header.frame_type = bytes[kFrameTypeAt];
  if (header.frame_type != kContiguous && header.frame_type != kSparse) {
    return corrupt(fmt::format("frame type {}, must be 0 or 1", header.frame_type));
  }
  FrameParameters& parameters = header.parameters;
  parameters.kind = header.frame_type == kContiguous ? ContainerKind::cframe : ContainerKind::sframe;
  parameters.frame_version = *version;

  const auto header_length = load_be<std::int32_t>(&bytes[kHeaderLengthAt]);
  if (header_length < static_cast<std::int32_t>(kMinHeaderLength)) {
    return corrupt(fmt::format("header length {}, at least {} is needed", header_length, kMinHeaderLength));
  }
  parameters.header_length = static_cast<std::uint64_t>(header_length);
  parameters.frame_length = load_be<std::uint64_t>(&bytes[kFrameLengthAt]);

  const auto nbytes = load_be<std::int64_t>(&bytes[kNbytesAt]);
  const auto cbytes = load_be<std::int64_t>(&bytes[kCbytesAt]);
  if (nbytes < 0) return corrupt(fmt::format("negative uncompressed length {}", nbytes));
  if (nbytes > 0 && cbytes < 0) return corrupt(fmt::format("negative length {} of the chunk section", cbytes));
  parameters.nbytes = static_cast<std::uint64_t>(nbytes);
  parameters.cbytes = nbytes > 0 ? static_cast<std::uint64_t>(cbytes) : 0;

  parameters.typesize = load_be<std::int32_t>(&bytes[kTypesizeAt]);
  if (parameters.typesize <= 0) return corrupt(fmt::format("typesize {}, must be positive", parameters.typesize));
  parameters.chunksize = load_be<std::int32_t>(&bytes[kChunksizeAt]);
  parameters.variable_chunks = parameters.chunksize == 0;
  read_defaults(bytes, parameters);

  const auto count = header_chunk_count(parameters);
  if (!count) return codec::Failure(count.error());
  header.chunk_count = *count;
  return header;
}

Result<void> check_extent(const FrameHeader& header, std::uint64_t available) {
  const std::uint64_t frame_length = header.parameters.frame_length;
  const std::uint64_t header_length = header.parameters.header_length;
  if (frame_length > available) {
    return corrupt(fmt::format("frame of {} bytes is truncated to {}", frame_length, available));
  }
  if (header_length > frame_length || frame_length - header_length < kMinTrailerLength) {
    return corrupt(fmt::format("frame length {} leaves no room for header and trailer", frame_length));
  }
  return {};
}

namespace {

MetalayerMap entries_of_map(ByteView bytes, std::size_t max_entries) {
  MetalayerMap map;
  const auto damaged = [&map](std::string reason) {
    map.damage = Error{ErrorKind::corruption, 0, std::move(reason)};
    return map;
  };
  if (bytes.size() < kMapEntriesAt) return damaged("metalayer map is truncated");
  if (bytes[0] != kFixArray3 || bytes[1] != kUint16 || bytes[kMapCountMarkerAt] != kMap16) {
    return damaged("metalayer map has invalid markers at its begin");
  }
  // The size in bytes 2 and 3 is ignored: it is redundant, and writers differ in what it counts.
  const std::size_t count = load_be<std::uint16_t>(&bytes[kMapCountAt]);
  if (count > max_entries) {
    return damaged(fmt::format("metalayer map of {} entries, at most {} are allowed", count, max_entries));
  }
  std::size_t at = kMapEntriesAt;
  map.entries.reserve(std::min(count, bytes.size() / kMinMapEntry));
  for (std::size_t i = 0; i < count; ++i) {
    if (at >= bytes.size()) return damaged("metalayer map is truncated");
    const std::uint8_t marker = bytes[at];
    const std::size_t length = marker & 0x1f;
    // Empty names are valid: C-Blosc2 writes them.
    if ((marker & 0xe0) != kFixString) return damaged("metalayer name is not a short string");
    if (bytes.size() - at < length + kMinMapEntry) return damaged("metalayer map is truncated");
    if (bytes[at + 1 + length] != kInt32) return damaged("metalayer offset is not an int32");
    const ByteView name = bytes.subspan(at + 1, length);
    const auto offset = load_be<std::int32_t>(&bytes[at + 1 + length + 1]);
    map.entries.push_back({std::string(name.begin(), name.end()), offset});
    at += length + kMinMapEntry;
  }
  if (bytes.size() - at < 3 || bytes[at] != kArray16 || load_be<std::uint16_t>(&bytes[at + 1]) != count) {
    return damaged(fmt::format("metalayer map does not end with an array of {}", count));
  }
  return map;
}

}  // namespace

MetalayerMap parse_map(ByteView bytes, std::size_t max_entries) {
  MetalayerMap map = entries_of_map(bytes, max_entries);
  map.sorted.resize(map.entries.size());
  std::iota(map.sorted.begin(), map.sorted.end(), 0U);
  const auto is_before = [&map](std::uint32_t one, std::uint32_t other) {
    return map.entries[one].name < map.entries[other].name;
  };
  // Numbered names are in order already.
  if (!std::is_sorted(map.sorted.begin(), map.sorted.end(), is_before))
    std::stable_sort(map.sorted.begin(), map.sorted.end(), is_before);
  return map;
}

const MapEntry* MetalayerMap::find(std::string_view name) const {
  const auto found = std::lower_bound(sorted.begin(), sorted.end(), name, [this](std::uint32_t number, auto wanted) {
    return entries[number].name < wanted;
  });
  return found != sorted.end() && entries[*found].name == name ? &entries[*found] : nullptr;
}

}  // namespace cframefs::frame
