#include "codec/stream/decode_context.h"

#include "codec/stream/decoder_state.h"

namespace cframefs::codec {

DecodeContext::DecodeContext() : states_(std::make_unique<DecoderState>()) {}
DecodeContext::~DecodeContext() = default;

ByteSpan DecodeContext::scratch(Slot slot, std::size_t size) {
  return scratch_[static_cast<std::size_t>(slot)].get(size);
}

void DecodeContext::trim(std::size_t keep) {
  for (Scratch& scratch : scratch_)
    scratch.trim(keep);
}

}  // namespace cframefs::codec
