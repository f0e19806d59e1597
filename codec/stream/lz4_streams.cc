#include "codec/stream/lz4_streams.h"

#include <cerrno>
#include <string>
#include <vector>

#include <fmt/core.h>
#include <lz4.h>
#include <lz4hc.h>

#include "codec/stream/stream_decoders.h"

namespace cframefs::codec {
namespace {

struct FreeStream {
  void operator()(LZ4_stream_t* stream) const { LZ4_freeStream(stream); }
  void operator()(LZ4_streamHC_t* stream) const { LZ4_freeStreamHC(stream); }
};
using Stream = std::unique_ptr<LZ4_stream_t, FreeStream>;
using HcStream = std::unique_ptr<LZ4_streamHC_t, FreeStream>;

struct Lz4State final : CodecState {
  const Stream stream{LZ4_createStream()};
};
struct Lz4hcState final : CodecState {
  const HcStream stream{LZ4_createStreamHC()};
};

// The content of the window before the first byte.
struct DecoderWindow final : Dictionary {
  explicit DecoderWindow(ByteView content) : bytes(content.begin(), content.end()) {}
  const std::vector<std::uint8_t> bytes;
};

// Streams that have loaded the dictionary, and point to it.
struct Lz4Dictionary final : Dictionary {
  explicit Lz4Dictionary(ByteView content) : bytes(content.begin(), content.end()) {}
  const std::vector<std::uint8_t> bytes;
  const Stream stream{LZ4_createStream()};
};
struct Lz4hcDictionary final : Dictionary {
  explicit Lz4hcDictionary(ByteView content) : bytes(content.begin(), content.end()) {}
  const std::vector<std::uint8_t> bytes;
  const HcStream stream{LZ4_createStreamHC()};
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

std::size_t length_or_none(int got) {
  return got > 0 ? static_cast<std::size_t>(got) : 0;
}

}  // namespace

Result<void> decode_lz4(StateSlot&, const StreamCodec& codec, ByteView stream, ByteSpan out) {
  const int plain = size_of(out);
  int got = 0;
  if (codec.dictionary != nullptr) {
    const ByteView window = dictionary_as<DecoderWindow>(*codec.dictionary).bytes;
    got = LZ4_decompress_safe_usingDict(chars(stream), chars(out), size_of(stream), plain, chars(window),
                                        size_of(window));
  } else {
    got = LZ4_decompress_safe(chars(stream), chars(out), size_of(stream), plain);
  }
  if (got < 0) return corrupt(fmt::format("lz4: corrupt stream at byte {}", -(got + 1)));
  if (got != plain) return corrupt(fmt::format("lz4: decoded {} bytes, expected {}", got, plain));
  return {};
}

Result<std::shared_ptr<const Dictionary>> lz4_decoder_dictionary(ByteView bytes) {
  return std::make_shared<const DecoderWindow>(bytes);
}

Result<std::size_t> encode_lz4(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain, ByteSpan out) {
  LZ4_stream_t* const stream = state_in<Lz4State>(slot).stream.get();
  if (stream == nullptr) return out_of_memory(slot, "lz4");
  if (dictionary == nullptr) {
    return length_or_none(
        LZ4_compress_fast_extState(stream, chars(plain), chars(out), size_of(plain), size_of(out), level));
  }
  // Start from a copy of the stream that has loaded the dictionary: each block may refer to the dictionary only.
  *stream = *dictionary_as<Lz4Dictionary>(*dictionary).stream;
  return length_or_none(
      LZ4_compress_fast_continue(stream, chars(plain), chars(out), size_of(plain), size_of(out), level));
}

Result<std::shared_ptr<const Dictionary>> lz4_encoder_dictionary(int, ByteView bytes) {
  auto dictionary = std::make_shared<const Lz4Dictionary>(bytes);
  if (!dictionary->stream) return io_error(ENOMEM, "lz4 dictionary");
  LZ4_loadDict(dictionary->stream.get(), chars(ByteView(dictionary->bytes)), size_of(dictionary->bytes));
  return dictionary;
}

Result<std::size_t> encode_lz4hc(StateSlot& slot, int level, const Dictionary* dictionary, ByteView plain,
                                 ByteSpan out) {
  LZ4_streamHC_t* const stream = state_in<Lz4hcState>(slot).stream.get();
  if (stream == nullptr) return out_of_memory(slot, "lz4hc");
  if (dictionary == nullptr) {
    return length_or_none(
        LZ4_compress_HC_extStateHC(stream, chars(plain), chars(out), size_of(plain), size_of(out), level));
  }
  *stream = *dictionary_as<Lz4hcDictionary>(*dictionary).stream;
  return length_or_none(LZ4_compress_HC_continue(stream, chars(plain), chars(out), size_of(plain), size_of(out)));
}

Result<std::shared_ptr<const Dictionary>> lz4hc_encoder_dictionary(int level, ByteView bytes) {
  auto dictionary = std::make_shared<const Lz4hcDictionary>(bytes);
  if (!dictionary->stream) return io_error(ENOMEM, "lz4hc dictionary");
  LZ4_resetStreamHC_fast(dictionary->stream.get(), level);
  LZ4_loadDictHC(dictionary->stream.get(), chars(ByteView(dictionary->bytes)), size_of(dictionary->bytes));
  return dictionary;
}

}  // namespace cframefs::codec
