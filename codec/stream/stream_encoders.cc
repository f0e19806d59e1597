#include "codec/stream/stream_encoders.h"

#include "codec/stream/codec_table.h"

namespace cframefs::codec {

Result<std::size_t> encode_stream(CodecStates& states, const StreamEncoder& encoder, ByteView plain, ByteSpan out) {
  const Result<const CodecInfo*> codec = check_writable(encoder.compcode);
  if (!codec) return Failure(codec.error());
  const CodecInfo& known = **codec;
  return known.encode(states.slot(known), known.levels[static_cast<std::size_t>(encoder.clevel)], encoder.dictionary,
                      plain, out);
}

}  // namespace cframefs::codec
