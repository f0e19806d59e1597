// The bytes of a frame's header and trailer, for those who write them.
//
// Format: frame_layout.h. Thread safety: functions and plain values. Units: bytes.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "codec/chunk_encoder.h"
#include "frame/cframe/frame_layout.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// What a frame that does not exist yet is to be like.
struct NewFrame {
  codec::EncodeParameters encode;
  std::int32_t chunksize = 0;  // 0: chunks of any size, that is for copies alone
  std::vector<Metalayer> metalayers;
  bool vl_blocks = false;                    // chunks may have blocks of variable length: for copies alone, too
  std::vector<Metalayer> vlmetalayers = {};  // contents are chunks
};

/// The bytes of a valid frame without chunks. REQUIRES: at most 16 metalayers, names of 1 to 31 bytes.
std::vector<std::uint8_t> empty_frame(const NewFrame& frame);

/// The frame that a file of 0 bytes stands for: without chunks, their size left open.
std::vector<std::uint8_t> blank_frame();

/// How chunks to come of an existing frame are encoded.
codec::EncodeParameters encode_parameters(const FrameParameters& parameters);

/// The fields that a commit changes. All lie in [kSwitchBegin, kSwitchEnd) of the header.
struct HeaderUpdate {
  std::uint64_t frame_length = 0;
  std::uint64_t nbytes = 0;
  std::uint64_t cbytes = 0;
  std::int32_t chunksize = 0;
  bool has_vlmetalayers = false;
};
inline constexpr std::size_t kSwitchBegin = layout::kFrameLengthAt;
inline constexpr std::size_t kSwitchEnd = layout::kHasVlmetaAt + 1;

/// Puts the fields into a header. REQUIRES: header.size() >= kFixedHeaderLength.
void encode_update(const HeaderUpdate& fields, ByteSpan header);

/// A header like `header`, but with these metalayers. REQUIRES: header.size() >= kFixedHeaderLength; as empty_frame().
std::vector<std::uint8_t> with_metalayers(ByteView header, const std::vector<Metalayer>& layers);

/// Whether a header or a trailer has room for metalayers of such contents: places in it have 31 bits. invalid: it has
/// not.
Result<void> check_metalayer_room(const std::vector<std::uint64_t>& contents);  // lengths
Result<void> check_metalayer_room(const std::vector<Metalayer>& layers);

/// What a map says of a metalayer.
struct MetalayerLength {
  std::string name;
  std::uint64_t length = 0;  // of its content
};

// A trailer piece by piece: its begin, each content behind its prefix, its end.
std::vector<std::uint8_t> trailer_begin(const std::vector<MetalayerLength>& layers);
std::vector<std::uint8_t> content_prefix(std::uint64_t length);
/// `before`: bytes of the trailer that lie before its end.
std::vector<std::uint8_t> trailer_end(std::uint64_t before);

/// A trailer with these variable-length metalayers. `content`: the chunk that holds the plain bytes.
std::vector<std::uint8_t> trailer_image(const std::vector<Metalayer>& stored);

/// The chunk that holds the content of a variable-length metalayer. REQUIRES: at most codec::kMaxChunkBytes.
std::vector<std::uint8_t> metalayer_chunk(ByteView plain);

}  // namespace cframefs::frame
