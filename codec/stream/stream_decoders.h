// The codecs: one compressed stream in, a known number of plain bytes out.
//
// A stream does not tell its plain length; the caller knows it, and a decoder writes exactly that many bytes or fails.
// All decoders work in one shot into the caller's memory, so nothing that a stream claims makes them allocate.
//
// Thread safety: a Dictionary is immutable and may be shared; DecoderState serve one thread at a time.
// Errors: corruption; unsupported, naming the codec, for those that this build does not have.
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

/// The dictionary of a chunk (chunk.md section 3), as its codec wants it; neither for codecs that know none.
struct Dictionary {
  std::unique_ptr<ZSTD_DDict, FreeZstdDictionary> zstd;
  std::vector<std::uint8_t> lz4;  // what the window holds before the first byte
};

/// Copies `bytes`.
Result<std::shared_ptr<const Dictionary>> make_dictionary(CodecFormat format, ByteView bytes);

struct StreamCodec {
  CodecFormat format = CodecFormat::blosclz;
  std::uint8_t compcode = 0;               // which codec, where format is registered
  const Dictionary* dictionary = nullptr;  // made for the same format
  // Registered codecs may want to know:
  std::uint8_t meta = 0;  // their parameter
  std::int32_t typesize = 1;
  std::span<const std::int32_t> blockshape = {};  // of an n-d array, in items; empty if it is none
};

/// The most plain bytes that `stored` bytes of any stream of this codec can hold. A stream that is to give more is
/// damaged, and known to be so before any memory is touched for it.
std::uint64_t expansion_limit(CodecFormat format, std::uint64_t stored);

/// Decodes `stream` into all of `out`.
Result<void> decode_stream(DecodeContext::DecoderState& states, const StreamCodec& codec, ByteView stream,
                           ByteSpan out);

}  // namespace cframefs::codec
