// Decoding of one compressed stream by the decoder of its codec: a known number of uncompressed bytes out.
//
// A stream does not store its uncompressed length: the caller passes it, and a decoder writes exactly that many bytes
// or fails. All decoders write in one call to the caller's memory, so no length that a stream claims makes them
// allocate.
//
// Thread safety: CodecStates serves one thread at a time.
// Errors: corruption; unsupported, naming the codec, if this build lacks it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/chunk_header.h"
#include "codec/stream/codec_states.h"

namespace cframefs::codec {

struct StreamCodec {
  CodecFormat format = CodecFormat::blosclz;
  std::uint8_t compcode = 0;               // selects among the codecs of the format
  const Dictionary* dictionary = nullptr;  // made by decoder_dictionary() for the same codec
  // For registered codecs:
  std::uint8_t meta = 0;  // parameter of the codec
  std::int32_t typesize = 1;
  std::span<const std::int32_t> blockshape = {};  // of an n-d array, in items; else empty
};

/// Makes a dictionary of a copy of `bytes`; nullptr if the codec has no dictionaries.
Result<std::shared_ptr<const Dictionary>> decoder_dictionary(CodecFormat format, std::uint8_t compcode, ByteView bytes);

/// Decodes `stream` into all of `out`.
Result<void> decode_stream(CodecStates& states, const StreamCodec& codec, ByteView stream, ByteSpan out);

}  // namespace cframefs::codec
