// Decoders of all codecs: one compressed stream in, a known number of uncompressed bytes out.
//
// A stream does not store its uncompressed length: the caller passes it, and a decoder writes exactly that many bytes
// or fails. All decoders write in one call to the caller's memory, so no length that a stream claims makes them
// allocate.
//
// Thread safety: a Dictionary is immutable and may be shared; a DecoderState serves one thread at a time.
// Errors: corruption; unsupported, naming the codec, if this build lacks it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include <zstd.h>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/chunk_header.h"
#include "codec/stream/decode_context.h"

namespace cframefs::codec {

struct FreeZstdDictionary {
  void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
};

/// The dictionary of a chunk (chunk.md section 3) in the form of its codec. Both members are empty for other codecs.
struct Dictionary {
  std::unique_ptr<ZSTD_DDict, FreeZstdDictionary> zstd;
  std::vector<std::uint8_t> lz4;  // content of the window before the first byte
};

/// Makes a dictionary of a copy of `bytes`.
Result<std::shared_ptr<const Dictionary>> make_dictionary(CodecFormat format, ByteView bytes);

struct StreamCodec {
  CodecFormat format = CodecFormat::blosclz;
  std::uint8_t compcode = 0;               // the codec, if format is registered
  const Dictionary* dictionary = nullptr;  // made for the same format
  // For registered codecs:
  std::uint8_t meta = 0;  // parameter of the codec
  std::int32_t typesize = 1;
  std::span<const std::int32_t> blockshape = {};  // of an n-d array, in items; else empty
};

/// Returns the greatest uncompressed length of a stream of `stored` bytes. A stream with a greater expected length is
/// corrupt, which is known before memory is touched for it.
std::uint64_t expansion_limit(CodecFormat format, std::uint64_t stored);

/// Decodes `stream` into all of `out`.
Result<void> decode_stream(DecodeContext::DecoderState& states, const StreamCodec& codec, ByteView stream,
                           ByteSpan out);

}  // namespace cframefs::codec
