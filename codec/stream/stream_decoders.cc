#include "codec/stream/stream_decoders.h"

#include <cerrno>
#include <string>

#include <lz4.h>
#include <snappy.h>

#include "codec/stream/blosclz.h"
#include "codec/stream/decoder_state.h"
#include "codec/stream/ndlz.h"
#include "codec/stream/zfp_streams.h"

namespace cframefs::codec {
namespace {

constexpr std::uint8_t kNdlz = 32;

const char* chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(ByteSpan bytes) {
  return reinterpret_cast<char*>(bytes.data());
}

Result<void> decode_lz4(const Dictionary* dictionary, ByteView stream, ByteSpan out) {
  const int stored = static_cast<int>(stream.size());
  const int plain = static_cast<int>(out.size());
  int got = 0;
  if (dictionary) {
    got = LZ4_decompress_safe_usingDict(chars(stream), chars(out), stored, plain, chars(ByteView(dictionary->lz4)),
                                        static_cast<int>(dictionary->lz4.size()));
  } else {
    got = LZ4_decompress_safe(chars(stream), chars(out), stored, plain);
  }
  if (got < 0) return corrupt("lz4: corrupt stream at byte " + std::to_string(-(got + 1)));
  if (got != plain) return corrupt("lz4: decoded " + std::to_string(got) + " bytes, expected " + std::to_string(plain));
  return {};
}

Result<void> decode_snappy(ByteView stream, ByteSpan out) {
  std::size_t plain = 0;
  if (!snappy::GetUncompressedLength(chars(stream), stream.size(), &plain) || plain != out.size()) {
    return corrupt("snappy: the stream does not claim the expected " + std::to_string(out.size()) + " bytes");
  }
  if (!snappy::RawUncompress(chars(stream), stream.size(), chars(out))) return corrupt("snappy: corrupt stream");
  return {};
}

Result<void> decode_zlib(DecodeContext::DecoderState& states, ByteView stream, ByteSpan out) {
  if (!states.inflater) states.inflater.reset(libdeflate_alloc_decompressor());
  if (!states.inflater) return io_error(ENOMEM, "zlib");
  // Given nullptr for the actual length, libdeflate fails unless the stream has exactly out.size() bytes.
  const libdeflate_result result =
      libdeflate_zlib_decompress(states.inflater.get(), stream.data(), stream.size(), out.data(), out.size(), nullptr);
  switch (result) {
    case LIBDEFLATE_SUCCESS:
      return {};
    case LIBDEFLATE_SHORT_OUTPUT:
      return corrupt("zlib: decoded fewer than the expected " + std::to_string(out.size()) + " bytes");
    case LIBDEFLATE_INSUFFICIENT_SPACE:
      return corrupt("zlib: decoded more than the expected " + std::to_string(out.size()) + " bytes");
    case LIBDEFLATE_BAD_DATA:
      break;
  }
  return corrupt("zlib: corrupt stream");
}

Result<void> decode_zstd(DecodeContext::DecoderState& states, const Dictionary* dictionary, ByteView stream,
                         ByteSpan out) {
  // Blosc streams are frames of the current zstd format: reject skippable frames and frames of zstd before 0.8, which
  // Debian's library would accept.
  if (stream.size() < 4 || load_le<std::uint32_t>(stream.data()) != ZSTD_MAGICNUMBER) {
    return corrupt("zstd: the stream does not begin with a zstd frame");
  }
  if (ZSTD_findFrameCompressedSize(stream.data(), stream.size()) != stream.size()) {
    return corrupt("zstd: the stream is not exactly one frame");
  }
  if (!states.zstd) states.zstd.reset(ZSTD_createDCtx());
  if (!states.zstd) return io_error(ENOMEM, "zstd");
  const ZSTD_DDict* digest = dictionary ? dictionary->zstd.get() : nullptr;
  // In one-shot decoding `out` serves as the window, whatever window size the frame claims.
  const std::size_t got =
      ZSTD_decompress_usingDDict(states.zstd.get(), out.data(), out.size(), stream.data(), stream.size(), digest);
  if (ZSTD_isError(got)) return corrupt(std::string("zstd: ") + ZSTD_getErrorName(got));
  if (got != out.size()) {
    return corrupt("zstd: decoded " + std::to_string(got) + " bytes, expected " + std::to_string(out.size()));
  }
  return {};
}

/// Returns the name of a registered codec that this build lacks.
std::string registered_name(std::uint8_t compcode) {
  switch (compcode) {
    case 36:
      return "openhtj2k";
    case 37:
      return "grok";
    case 38:
      return "openzl";
    case 39:
      return "j2k";
    case 40:
      return "htj2k";
    default:
      return "unknown";
  }
}

Result<void> decode_registered(const StreamCodec& codec, ByteView stream, ByteSpan out) {
  switch (codec.compcode) {
    case kNdlz:
      return decode_ndlz(codec.meta, stream, out);
    case kZfpAccuracy:
    case kZfpPrecision:
    case kZfpRate:
      return decode_zfp(codec.compcode, codec.meta, codec.typesize, codec.blockshape, stream, out);
    default:
      return unsupported("codec " + std::to_string(codec.compcode) + " (" + registered_name(codec.compcode) + ")");
  }
}

}  // namespace

Result<std::shared_ptr<const Dictionary>> make_dictionary(CodecFormat format, ByteView bytes) {
  auto dictionary = std::make_shared<Dictionary>();
  if (format == CodecFormat::zstd) {
    dictionary->zstd.reset(ZSTD_createDDict(bytes.data(), bytes.size()));
    if (!dictionary->zstd) return corrupt("zstd rejects the dictionary of " + std::to_string(bytes.size()) + " bytes");
  } else if (format == CodecFormat::lz4) {
    dictionary->lz4.assign(bytes.begin(), bytes.end());
  }
  return dictionary;
}

std::uint64_t expansion_limit(CodecFormat format, std::uint64_t stored) {
  switch (format) {
    case CodecFormat::blosclz:
    case CodecFormat::lz4:
    case CodecFormat::snappy:
      // A byte that extends a match adds at most 255 bytes; any other byte adds fewer.
      return 255 * stored;
    case CodecFormat::zlib:
      // Two codes of one bit each give 258 bytes: 4 * 258 per byte.
      return 1032 * stored;
    case CodecFormat::zstd:
      // Four stored bytes can give a block of 128 KiB of one repeated byte.
      return 131072 * (stored / 4 + 1);
    case CodecFormat::reserved:
    case CodecFormat::registered:
    case CodecFormat::superchunk:
      break;
  }
  return UINT64_MAX;
}

Result<void> decode_stream(DecodeContext::DecoderState& states, const StreamCodec& codec, ByteView stream,
                           ByteSpan out) {
  switch (codec.format) {
    case CodecFormat::blosclz:
      return decode_blosclz(stream, out);
    case CodecFormat::lz4:
      return decode_lz4(codec.dictionary, stream, out);
    case CodecFormat::snappy:
      return decode_snappy(stream, out);
    case CodecFormat::zlib:
      return decode_zlib(states, stream, out);
    case CodecFormat::zstd:
      return decode_zstd(states, codec.dictionary, stream, out);
    case CodecFormat::registered:
      return decode_registered(codec, stream, out);
    case CodecFormat::reserved:
      return unsupported("codec format 5 (lizard)");
    case CodecFormat::superchunk:
      break;
  }
  return unsupported("codec format 7");
}

}  // namespace cframefs::codec
