// How chunks are made: codec, level, filters, block size. The encoder, its filters and its codecs share these.
#pragma once

#include <array>
#include <cstdint>

#include "codec/format/chunk_header.h"

namespace cframefs::codec {

/// Compressor codes (codecs.md section 1) of the codecs that chunks are made with.
inline constexpr std::uint8_t kBlosclz = 0;
inline constexpr std::uint8_t kLz4 = 1;
inline constexpr std::uint8_t kLz4hc = 2;
inline constexpr std::uint8_t kZlib = 4;
inline constexpr std::uint8_t kZstd = 5;

/// What a frame's header says of chunks to come.
struct EncodeParameters {
  std::uint8_t compcode = kZstd;
  std::uint8_t compcode_meta = 0;
  int clevel = 5;  // 0..9; 0: stored as they are
  std::array<std::uint8_t, kFilterSlots> filters{};
  std::array<std::uint8_t, kFilterSlots> filters_meta{};
  std::int32_t typesize = 1;    // the frame's true one, may exceed 255
  std::int32_t blocksize = 0;   // 0: automatic
  std::uint8_t split_mode = 4;  // 1 always, 2 never, 3 auto, 4 forward-compat; 0 as 4
  bool use_dict = false;        // for codecs that know dictionaries
};

/// The typesize that a chunk's header has room for: items wider than 255 bytes are taken for single bytes.
constexpr std::int32_t header_typesize(const EncodeParameters& parameters) {
  constexpr std::int32_t kMaxHeaderTypesize = 255;
  return parameters.typesize <= kMaxHeaderTypesize ? parameters.typesize : 1;
}

}  // namespace cframefs::codec
