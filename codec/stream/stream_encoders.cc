#include "codec/stream/stream_encoders.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include <zdict.h>
#include <zstd_errors.h>

#include "codec/format/encode_parameters.h"
#include "codec/stream/encoder_states.h"

namespace cframefs::codec {
namespace {

struct FreeZstdDigest {
  void operator()(ZSTD_CDict* digest) const { ZSTD_freeCDict(digest); }
};

const char* chars(ByteView bytes) {
  return reinterpret_cast<const char*>(bytes.data());
}
char* chars(ByteSpan bytes) {
  return reinterpret_cast<char*>(bytes.data());
}
int size_of(ByteView bytes) {
  return static_cast<int>(bytes.size());
}

// Maps clevel as the reference library does (codecs.md section 4).
int zstd_level(int clevel) {
  return clevel < 9 ? 2 * clevel - 1 : ZSTD_maxCLevel();
}
// Levels 5 and 6 of libdeflate compress worse than those of zlib-ng, which the reference library uses; other levels do
// not.
int deflate_level(int clevel) {
  return clevel == 5 || clevel == 6 ? clevel + 1 : clevel;
}
int lz4_acceleration(int clevel) {
  return 10 - clevel;
}

std::size_t length_or_none(int got) {
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

}  // namespace

struct EncodeDictionary::Digest {
  std::unique_ptr<LZ4_stream_t, FreeLz4Stream> lz4;
  std::unique_ptr<LZ4_streamHC_t, FreeLz4hcStream> lz4hc;
  std::unique_ptr<ZSTD_CDict, FreeZstdDigest> zstd;
};

EncodeDictionary::EncodeDictionary() : digest_(std::make_unique<Digest>()) {}
EncodeDictionary::EncodeDictionary(EncodeDictionary&&) noexcept = default;
EncodeDictionary& EncodeDictionary::operator=(EncodeDictionary&&) noexcept = default;
EncodeDictionary::~EncodeDictionary() = default;

Result<EncodeDictionary> EncodeDictionary::create(std::uint8_t compcode, int clevel, ByteView bytes) {
  EncodeDictionary made;
  made.bytes_.assign(bytes.begin(), bytes.end());
  Digest& digest = *made.digest_;
  const ByteView kept = made.bytes_;
  if (compcode == kZstd) {
    digest.zstd.reset(ZSTD_createCDict(kept.data(), kept.size(), zstd_level(clevel)));
    if (!digest.zstd) return io_error(ENOMEM, "zstd dictionary");
  } else if (compcode == kLz4) {
    digest.lz4.reset(LZ4_createStream());
    if (!digest.lz4) return io_error(ENOMEM, "lz4 dictionary");
    LZ4_loadDict(digest.lz4.get(), chars(kept), size_of(kept));
  } else {
    digest.lz4hc.reset(LZ4_createStreamHC());
    if (!digest.lz4hc) return io_error(ENOMEM, "lz4hc dictionary");
    LZ4_resetStreamHC_fast(digest.lz4hc.get(), clevel);
    LZ4_loadDictHC(digest.lz4hc.get(), chars(kept), size_of(kept));
  }
  return made;
}

namespace {

Result<std::size_t> encode_lz4(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                               ByteSpan out) {
  if (!states.lz4) states.lz4.reset(LZ4_createStream());
  if (!states.lz4) return io_error(ENOMEM, "lz4");
  const int acceleration = lz4_acceleration(encoder.clevel);
  if (encoder.dictionary == nullptr) {
    return length_or_none(LZ4_compress_fast_extState(states.lz4.get(), chars(plain), chars(out), size_of(plain),
                                                     size_of(out), acceleration));
  }
  // Start from a copy of the stream that has loaded the dictionary: each block may refer to the dictionary only.
  *states.lz4 = *encoder.dictionary->digest().lz4;
  return length_or_none(LZ4_compress_fast_continue(states.lz4.get(), chars(plain), chars(out), size_of(plain),
                                                   size_of(out), acceleration));
}

Result<std::size_t> encode_lz4hc(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                                 ByteSpan out) {
  if (!states.lz4hc) states.lz4hc.reset(LZ4_createStreamHC());
  if (!states.lz4hc) return io_error(ENOMEM, "lz4hc");
  if (encoder.dictionary == nullptr) {
    return length_or_none(LZ4_compress_HC_extStateHC(states.lz4hc.get(), chars(plain), chars(out), size_of(plain),
                                                     size_of(out), encoder.clevel));
  }
  *states.lz4hc = *encoder.dictionary->digest().lz4hc;
  return length_or_none(
      LZ4_compress_HC_continue(states.lz4hc.get(), chars(plain), chars(out), size_of(plain), size_of(out)));
}

Result<std::size_t> encode_zlib(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                                ByteSpan out) {
  if (!states.deflater || states.deflater_level != encoder.clevel) {
    states.deflater.reset(libdeflate_alloc_compressor(deflate_level(encoder.clevel)));
    states.deflater_level = encoder.clevel;
  }
  if (!states.deflater) return io_error(ENOMEM, "zlib");
  return libdeflate_zlib_compress(states.deflater.get(), plain.data(), plain.size(), out.data(), out.size());
}

Result<std::size_t> encode_zstd(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                                ByteSpan out) {
  if (!states.zstd) states.zstd.reset(ZSTD_createCCtx());
  if (!states.zstd) return io_error(ENOMEM, "zstd");
  std::size_t got = 0;
  if (encoder.dictionary != nullptr) {
    got = ZSTD_compress_usingCDict(states.zstd.get(), out.data(), out.size(), plain.data(), plain.size(),
                                   encoder.dictionary->digest().zstd.get());
  } else {
    got = ZSTD_compressCCtx(states.zstd.get(), out.data(), out.size(), plain.data(), plain.size(),
                            zstd_level(encoder.clevel));
  }
  if (!ZSTD_isError(got)) return got;
  if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall) return 0;
  return io_error(ENOMEM, std::string("zstd: ") + ZSTD_getErrorName(got));
}

}  // namespace

std::vector<std::uint8_t> train_dictionary(std::uint8_t compcode, ByteView samples,
                                           const std::vector<std::size_t>& sizes, std::size_t most) {
  std::vector<std::uint8_t> dictionary;
  if (compcode == kZstd) {
    dictionary.resize(most);
    const std::size_t got = ZDICT_trainFromBuffer(dictionary.data(), most, samples.data(), sizes.data(),
                                                  static_cast<unsigned>(sizes.size()));
    dictionary.resize(ZDICT_isError(got) ? 0 : got);
  } else {
    const auto length = static_cast<std::ptrdiff_t>(std::min(most, samples.size()));
    dictionary.assign(samples.begin(), samples.begin() + length);
  }
  return dictionary;
}

Result<std::size_t> encode_stream(EncodeContext::EncoderState& states, const StreamEncoder& encoder, ByteView plain,
                                  ByteSpan out) {
  switch (encoder.compcode) {
    case kBlosclz:
      return encode_blosclz(states.blosclz, encoder.clevel, plain, out);
    case kLz4:
      return encode_lz4(states, encoder, plain, out);
    case kLz4hc:
      return encode_lz4hc(states, encoder, plain, out);
    case kZlib:
      return encode_zlib(states, encoder, plain, out);
    case kZstd:
      return encode_zstd(states, encoder, plain, out);
    default:
      return unsupported("codec " + std::to_string(encoder.compcode));
  }
}

}  // namespace cframefs::codec
