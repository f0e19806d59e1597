#include "frame/compat/legacy_header.h"

#include <algorithm>
#include <span>
#include <string>

#include <fmt/core.h>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::load_be;
using codec::unsupported;

// Offsets of the header fields. Those up to the typesize are the current ones (frame_layout.h).
constexpr std::uint8_t kBeta1Fields = 11;  // 12 with metalayers
constexpr std::uint8_t kBeta2Fields = 13;
constexpr std::uint8_t kBeta1Flags = 0x24;
constexpr std::uint8_t kBeta2Flags = 0x21;
constexpr std::size_t kChunksizeAt = 0x35;      // i32
constexpr std::size_t kEncodeThreadsAt = 0x3a;  // i16
constexpr std::size_t kDecodeThreadsAt = 0x3d;  // i16
constexpr std::size_t kHasMetaAt = 0x3f;        // bool marker: metalayers in beta1, usermeta in beta2
constexpr std::size_t kBeta1Length = 0x40;      // offset of the metalayers, if there are any
constexpr std::size_t kFilterMarkerAt = 0x40;   // fixext 16
constexpr std::size_t kFilterCountAt = 0x41;    // u8
constexpr std::size_t kFiltersAt = 0x42;        // filter ids, from the front
constexpr std::size_t kFiltersMetaAt = 0x4a;
constexpr std::size_t kBeta2MetalayersAt = 0x52;
constexpr std::size_t kBeta2MinLength = 0x5c;
constexpr std::size_t kEmptySection = 10;  // bytes of a metalayer section without metalayers

// Trailer: marker | version | C6 u32 usermeta length | usermeta | CE u32 trailer length | D8 kind | 16 bytes.
constexpr std::size_t kTrailerFront = 7;
constexpr std::size_t kMinTrailer = kTrailerFront + layout::kTrailerEnd;
constexpr std::uint8_t kTrailerMarker0 = 0x0d;  // an error of beta.2, not msgpack
constexpr std::uint8_t kTrailerMarker1 = layout::kFixArray4;

struct Marker {
  std::size_t at;
  std::uint8_t value;
};

Result<void> check_markers(ByteView bytes, std::span<const Marker> markers) {
  for (const Marker& marker : markers) {
    if (bytes[marker.at] != marker.value) {
      return corrupt(
          fmt::format("beta frame header has {} at byte {}, expected {}", bytes[marker.at], marker.at, marker.value));
    }
  }
  return {};
}

Result<LegacyForm> header_form(ByteView bytes) {
  static constexpr Marker front[] = {
      {layout::kHeaderLengthAt - 1, layout::kInt32},
      {layout::kFrameLengthAt - 1, layout::kUint64},
      {layout::kFlagsMarkerAt, layout::kFixString4},
      {layout::kNbytesAt - 1, layout::kInt64},
      {layout::kCbytesAt - 1, layout::kInt64},
      {layout::kTypesizeAt - 1, layout::kInt32},
      {kChunksizeAt - 1, layout::kInt32},
      {kEncodeThreadsAt - 1, layout::kInt16},
      {kDecodeThreadsAt - 1, layout::kInt16},
  };
  const std::uint8_t fields = bytes[layout::kArrayMarkerAt] & 0x0f;
  const LegacyForm form = fields == kBeta2Fields ? LegacyForm::beta2 : LegacyForm::beta1;
  if (bytes.size() < (form == LegacyForm::beta1 ? kBeta1Length : kBeta2MetalayersAt)) {
    return corrupt(fmt::format("the frame ends inside its header, after {} bytes", bytes.size()));
  }
  // Versions between beta.5 and the first release candidate had other forms; none of them was released.
  const std::uint8_t flags = bytes[layout::kGeneralFlagsAt];
  if (flags != (form == LegacyForm::beta1 ? kBeta1Flags : kBeta2Flags)) {
    return unsupported(fmt::format("frame of {} fields and flags {}, which no release of Blosc2 wrote", fields, flags));
  }
  if (auto fine = check_markers(bytes, front); !fine) return Failure(fine.error());
  if (form == LegacyForm::beta2) {
    static constexpr Marker filters[] = {{kFilterMarkerAt, layout::kFixExt16}};
    if (auto fine = check_markers(bytes, filters); !fine) return Failure(fine.error());
  }
  return form;
}

/// Reads the filters. The header stores them packed to the front, while chunks store them by slot. Here they get the
/// last slots, which is right for a single filter.
void read_filters(ByteView bytes, FrameParameters& parameters) {
  const std::size_t count = std::min<std::size_t>(bytes[kFilterCountAt], codec::kFilterSlots);
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t slot = codec::kFilterSlots - count + i;
    parameters.filters[slot] = bytes[kFiltersAt + i];
    parameters.filters_meta[slot] = bytes[kFiltersMetaAt + i];
  }
}

Result<void> read_numbers(ByteView bytes, LegacyHeader& header) {
  FrameParameters& parameters = header.frame.parameters;
  const auto header_length = load_be<std::int32_t>(&bytes[layout::kHeaderLengthAt]);
  const std::size_t least = header.form == LegacyForm::beta1 ? kBeta1Length : kBeta2MinLength;
  if (header_length < static_cast<std::int32_t>(least)) {
    return corrupt(fmt::format("header length {} is less than {}", header_length, least));
  }
  parameters.header_length = static_cast<std::uint64_t>(header_length);
  parameters.frame_length = load_be<std::uint64_t>(&bytes[layout::kFrameLengthAt]);
  const auto nbytes = load_be<std::int64_t>(&bytes[layout::kNbytesAt]);
  const auto cbytes = load_be<std::int64_t>(&bytes[layout::kCbytesAt]);
  if (nbytes < 0) return corrupt(fmt::format("uncompressed length {} is negative", nbytes));
  if (cbytes < 0) return corrupt(fmt::format("length {} of the chunk section is negative", cbytes));
  if ((nbytes == 0) != (cbytes == 0)) {
    return corrupt(fmt::format("{} uncompressed bytes are stored in {}", nbytes, cbytes));
  }
  parameters.nbytes = static_cast<std::uint64_t>(nbytes);
  parameters.cbytes = static_cast<std::uint64_t>(cbytes);
  parameters.typesize = load_be<std::int32_t>(&bytes[layout::kTypesizeAt]);
  if (parameters.typesize <= 0) return corrupt(fmt::format("typesize {} is less than 1", parameters.typesize));
  header.chunksize = load_be<std::int32_t>(&bytes[kChunksizeAt]);
  if (header.chunksize < 0) return corrupt(fmt::format("chunk size {} is negative", header.chunksize));
  return {};
}

}  // namespace

bool is_legacy_header(ByteView bytes) {
  const std::uint8_t marker = bytes[layout::kArrayMarkerAt];
  return marker >= (0x90 | kBeta1Fields) && marker <= (0x90 | kBeta2Fields);
}

bool LegacyHeader::has_metalayers() const {
  return metalayers_at != 0 && frame.parameters.header_length > metalayers_at + kEmptySection;
}

Result<LegacyHeader> parse_legacy_header(ByteView bytes) {
  const auto form = header_form(bytes);
  if (!form) return Failure(form.error());
  LegacyHeader header;
  header.form = *form;
  if (auto done = read_numbers(bytes, header); !done) return Failure(done.error());

  FrameParameters& parameters = header.frame.parameters;
  parameters.kind = ContainerKind::legacy;
  parameters.frame_version = bytes[layout::kGeneralFlagsAt] & layout::kVersionMask;
  parameters.compcode = bytes[layout::kCodecAt] & 0x0f;
  parameters.clevel = bytes[layout::kCodecAt] >> 4;
  parameters.variable_chunks = true;
  header.frame.chunk_count = parameters.nbytes == 0 ? 0 : -1;
  if (header.form == LegacyForm::beta2) {
    read_filters(bytes, parameters);
    header.metalayers_at = kBeta2MetalayersAt;
  } else if (bytes[kHasMetaAt] == layout::kTrue) {
    header.metalayers_at = kBeta1Length;
  }
  return header;
}

Result<void> check_extent(const LegacyHeader& header, std::uint64_t available) {
  const FrameParameters& parameters = header.frame.parameters;
  if (parameters.frame_length > available) {
    return corrupt(fmt::format("frame of {} bytes is truncated to {}", parameters.frame_length, available));
  }
  const std::uint64_t trailer = header.form == LegacyForm::beta1 ? 0 : kMinTrailer;
  if (parameters.header_length > parameters.frame_length ||
      parameters.frame_length - parameters.header_length < trailer) {
    return corrupt(fmt::format("frame length {} leaves no room for header and trailer", parameters.frame_length));
  }
  if (parameters.cbytes > parameters.frame_length - parameters.header_length - trailer) {
    return corrupt(fmt::format("chunk section of {} bytes does not fit into the frame", parameters.cbytes));
  }
  return {};
}

Result<LegacyTrailer> read_legacy_trailer(RangeBuffer& windows, const LegacyHeader& header) {
  const FrameParameters& parameters = header.frame.parameters;
  const std::uint64_t end = parameters.frame_length;
  LegacyTrailer trailer;
  trailer.begin = end;
  if (header.form == LegacyForm::beta1) return trailer;

  const auto last = windows.get(FileOffset{end - layout::kTrailerEnd}, layout::kTrailerEnd);
  if (!last) return Failure(last.error());
  if ((*last)[0] != layout::kUint32 || (*last)[5] != layout::kFixExt16) {
    return corrupt("the frame does not end with a trailer");
  }
  const std::uint64_t length = load_be<std::uint32_t>(&(*last)[1]);
  if (length < kMinTrailer || length > end - parameters.header_length - parameters.cbytes) {
    return corrupt(fmt::format("trailer length {} does not fit into the frame", length));
  }
  trailer.begin = end - length;
  const auto front = windows.get(FileOffset{trailer.begin}, kTrailerFront);
  if (!front) return Failure(front.error());
  const std::uint8_t marker = (*front)[0];
  const std::uint8_t version = (*front)[1];
  if (marker == kTrailerMarker0 && version == 0) {
    trailer.form = LegacyForm::beta2;
  } else if (marker == kTrailerMarker1 && version == 1) {
    trailer.form = LegacyForm::beta3;
  } else {
    return corrupt(fmt::format("unknown trailer marker {} and version {}", marker, version));
  }
  trailer.usermeta_at = trailer.begin + kTrailerFront;
  trailer.usermeta_size = load_be<std::uint32_t>(&(*front)[3]);
  if ((*front)[2] != layout::kBin32 || trailer.usermeta_size != length - kMinTrailer) {
    return corrupt(fmt::format("usermeta of {} bytes does not fit a trailer of {}", trailer.usermeta_size, length));
  }
  return trailer;
}

}  // namespace cframefs::frame
