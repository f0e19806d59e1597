// The parameters of an encoder: codec, level, filters, block size. Shared by chunk encoder, filters and codecs.
#pragma once

#include <array>
#include <cstdint>

#include "codec/format/chunk_header.h"

namespace cframefs::codec {

/// Compressor codes (codecs.md section 1) of the codecs that are used where the user does not choose one: in indexes,
/// metalayers, samples, and by default. codec/stream/codec_table.h has all codecs.
inline constexpr std::uint8_t kLz4 = 1;
inline constexpr std::uint8_t kZstd = 5;

/// The parameters in a frame's header for chunks that are written later.
struct EncodeParameters {
  std::uint8_t compcode = kZstd;
  std::uint8_t compcode_meta = 0;
  int clevel = 5;  // 0..9; 0: store chunks uncompressed
  std::array<std::uint8_t, kFilterSlots> filters{};
  std::array<std::uint8_t, kFilterSlots> filters_meta{};
  std::int32_t typesize = 1;    // of the frame, may exceed 255
  std::int32_t blocksize = 0;   // 0: automatic
  std::uint8_t split_mode = 4;  // 1 always, 2 never, 3 auto, 4 forward-compat; 0 as 4
  bool use_dict = false;        // ignored by codecs without dictionaries
};

/// Returns the typesize for a chunk header, which has one byte for it: 1 for items wider than 255 bytes.
constexpr std::int32_t header_typesize(const EncodeParameters& parameters) {
  constexpr std::int32_t kMaxHeaderTypesize = 255;
  return parameters.typesize <= kMaxHeaderTypesize ? parameters.typesize : 1;
}

}  // namespace cframefs::codec
