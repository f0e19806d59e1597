// Encodes the header and the trailer of a frame.
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

/// The parameters of a frame to be created.
struct NewFrame {
  codec::EncodeParameters encode;
  std::int32_t chunksize = 0;  // 0: chunks of different sizes, only for copies of such frames
  std::vector<Metalayer> metalayers;
  bool vl_blocks = false;                    // chunks may have blocks of variable length: only for copies, too
  std::vector<Metalayer> vlmetalayers = {};  // each content is an encoded chunk
  bool has_seal = true;                      // chunks get digests when they are written (seal.md)
};

/// Returns a valid frame without chunks. REQUIRES: at most 16 metalayers, names of 1 to 31 bytes.
std::vector<std::uint8_t> empty_frame(const NewFrame& frame);

/// Returns the frame that a file of 0 bytes represents: without chunks, with an undecided chunk size.
std::vector<std::uint8_t> blank_frame();

/// Returns the parameters with which new chunks of an existing frame are encoded.
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

/// Writes the fields into `header`. REQUIRES: header.size() >= kFixedHeaderLength.
void encode_update(const HeaderUpdate& fields, ByteSpan header);

/// Returns the fixed part of `header` followed by these metalayers, with the header length updated. REQUIRES:
/// header.size() >= kFixedHeaderLength; metalayers as for empty_frame().
std::vector<std::uint8_t> with_metalayers(ByteView header, const std::vector<Metalayer>& layers);

/// Returns `invalid` if metalayers with contents of these lengths do not fit into a header or a trailer, whose offsets
/// have 31 bits.
Result<void> check_metalayer_room(const std::vector<std::uint64_t>& contents);  // lengths
Result<void> check_metalayer_room(const std::vector<Metalayer>& layers);

/// A metalayer as the map of names needs it.
struct MetalayerLength {
  std::string name;
  std::uint64_t length = 0;  // of its content
};

// The parts of a trailer: its begin, then for each metalayer a prefix and the content, then its end.
std::vector<std::uint8_t> trailer_begin(const std::vector<MetalayerLength>& layers);
std::vector<std::uint8_t> content_prefix(std::uint64_t length);
/// `before`: bytes of the trailer before the part that is returned.
std::vector<std::uint8_t> trailer_end(std::uint64_t before);

/// Returns a trailer with these variable-length metalayers. Metalayer::content: the encoded chunk.
std::vector<std::uint8_t> trailer_image(const std::vector<Metalayer>& stored);

/// Encodes the content of a variable-length metalayer as a chunk. REQUIRES: plain.size() <= codec::kMaxChunkBytes.
std::vector<std::uint8_t> metalayer_chunk(ByteView plain);

}  // namespace cframefs::frame
