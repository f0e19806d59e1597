#include "codec/stream/stream_decoders.h"

#include <string>

#include "codec/stream/codec_table.h"

namespace cframefs::codec {
namespace {

// `known`: the codec's row, or nullptr.
Failure lacks_decoder(const StreamCodec& codec, const CodecInfo* known) {
  if (codec.format == CodecFormat::registered) {
    return unsupported("codec " + std::to_string(codec.compcode) + " (" +
                       std::string(known != nullptr ? known->name : "unknown") + ")");
  }
  return unsupported("codec format " + std::to_string(static_cast<int>(codec.format)) +
                     (codec.format == CodecFormat::reserved ? " (lizard)" : ""));
}

}  // namespace

Result<std::shared_ptr<const Dictionary>> decoder_dictionary(CodecFormat format, std::uint8_t compcode,
                                                             ByteView bytes) {
  const CodecInfo* const known = stream_codec_info(format, compcode);
  if (known == nullptr || known->decoder_dictionary == nullptr) return nullptr;
  return known->decoder_dictionary(bytes);
}

Result<void> decode_stream(CodecStates& states, const StreamCodec& codec, ByteView stream, ByteSpan out) {
  const CodecInfo* const known = stream_codec_info(codec.format, codec.compcode);
  if (known == nullptr || known->decode == nullptr) return lacks_decoder(codec, known);
  return known->decode(states.slot(*known), codec, stream, out);
}

}  // namespace cframefs::codec
