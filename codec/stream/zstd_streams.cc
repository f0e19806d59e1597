#include "codec/stream/zstd_streams.h"

#include <cerrno>
#include <string>

#include <fmt/core.h>
#include <zdict.h>
#include <zstd.h>
#include <zstd_errors.h>

#include "codec/stream/stream_decoders.h"

namespace cframefs::codec {
namespace {

struct FreeZstd {
  void operator()(ZSTD_DCtx* context) const { ZSTD_freeDCtx(context); }
  void operator()(ZSTD_CCtx* context) const { ZSTD_freeCCtx(context); }
  void operator()(ZSTD_DDict* dictionary) const { ZSTD_freeDDict(dictionary); }
  void operator()(ZSTD_CDict* dictionary) const { ZSTD_freeCDict(dictionary); }
};

struct DecoderState final : CodecState {
  const std::unique_ptr<ZSTD_DCtx, FreeZstd> context{ZSTD_createDCtx()};
};
struct EncoderState final : CodecState {
  // The tables of zstd take some KiB to hundreds of MiB, depending on the level.
  std::size_t variable_bytes() const override { return ZSTD_sizeof_CCtx(context.get()); }

  const std::unique_ptr<ZSTD_CCtx, FreeZstd> context{ZSTD_createCCtx()};
};

struct DecoderDictionary final : Dictionary {
  explicit DecoderDictionary(ByteView bytes) : digest(ZSTD_createDDict(bytes.data(), bytes.size())) {}
  const std::unique_ptr<ZSTD_DDict, FreeZstd> digest;
};
struct EncoderDictionary final : Dictionary {
  EncoderDictionary(ByteView bytes, int level) : digest(ZSTD_createCDict(bytes.data(), bytes.size(), level)) {}
  const std::unique_ptr<ZSTD_CDict, FreeZstd> digest;
};

}  // namespace

Result<void> decode_zstd(StateSlot& slot, const StreamCodec& codec, ByteView stream, ByteSpan out) {
  // Blosc streams are frames of the current zstd format: reject skippable frames and frames of zstd before 0.8, which
  // Debian's library would accept.
  if (stream.size() < 4 || load_le<std::uint32_t>(stream.data()) != ZSTD_MAGICNUMBER) {
    return corrupt("zstd: the stream does not begin with a zstd frame");
  }
  if (ZSTD_findFrameCompressedSize(stream.data(), stream.size()) != stream.size()) {
    return corrupt("zstd: the stream is not exactly one frame");
  }
  ZSTD_DCtx* const context = state_in<DecoderState>(slot).context.get();
  if (context == nullptr) return out_of_memory(slot, "zstd");
  const ZSTD_DDict* const digest =
      codec.dictionary != nullptr ? dictionary_as<DecoderDictionary>(*codec.dictionary).digest.get() : nullptr;
  // In one-shot decoding `out` serves as the window, whatever window size the frame claims.
  const std::size_t got =
      ZSTD_decompress_usingDDict(context, out.data(), out.size(), stream.data(), stream.size(), digest);
  if (ZSTD_isError(got)) return corrupt(std::string("zstd: ") + ZSTD_getErrorName(got));
  if (got != out.size()) {
    return corrupt(fmt::format("zstd: decoded {} bytes, expected {}", got, out.size()));
  }
  return {};
}

Result<std::shared_ptr<const Dictionary>> zstd_decoder_dictionary(ByteView bytes) {
  auto dictionary = std::make_shared<const DecoderDictionary>(bytes);
  if (!dictionary->digest) return corrupt(fmt::format("zstd rejects the dictionary of {} bytes", bytes.size()));
  return dictionary;
}

Result<std::size_t> encode_zstd(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain,
                                ByteSpan out) {
  ZSTD_CCtx* const context = state_in<EncoderState>(slot).context.get();
  if (context == nullptr) return out_of_memory(slot, "zstd");
  std::size_t got = 0;
  if (dictionary != nullptr) {
    got = ZSTD_compress_usingCDict(context, out.data(), out.size(), plain.data(), plain.size(),
                                   dictionary_as<EncoderDictionary>(*dictionary).digest.get());
  } else {
    got = ZSTD_compressCCtx(context, out.data(), out.size(), plain.data(), plain.size(), level);
  }
  if (!ZSTD_isError(got)) return got;
  if (ZSTD_getErrorCode(got) == ZSTD_error_dstSize_tooSmall) return 0;
  return io_error(ENOMEM, std::string("zstd: ") + ZSTD_getErrorName(got));
}

Result<std::shared_ptr<const Dictionary>> zstd_encoder_dictionary(int level, ByteView bytes) {
  auto dictionary = std::make_shared<const EncoderDictionary>(bytes, level);
  if (!dictionary->digest) return io_error(ENOMEM, "zstd dictionary");
  return dictionary;
}

std::vector<std::uint8_t> train_zstd_dictionary(ByteView samples, const std::vector<std::size_t>& sizes,
                                                std::size_t most) {
  std::vector<std::uint8_t> dictionary(most);
  const std::size_t got =
      ZDICT_trainFromBuffer(dictionary.data(), most, samples.data(), sizes.data(), static_cast<unsigned>(sizes.size()));
  dictionary.resize(ZDICT_isError(got) ? 0 : got);
  return dictionary;
}

}  // namespace cframefs::codec
