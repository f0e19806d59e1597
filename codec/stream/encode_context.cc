#include "codec/stream/encode_context.h"

#include "codec/stream/encoder_states.h"

namespace cframefs::codec {

EncodeContext::EncodeContext() : states_(std::make_unique<EncoderState>()) {}
EncodeContext::~EncodeContext() = default;

ByteSpan EncodeContext::scratch(Slot slot, std::size_t size) {
  return scratch_[static_cast<std::size_t>(slot)].get(size);
}

void EncodeContext::trim(std::size_t keep) {
  for (Scratch& scratch : scratch_)
    scratch.trim(keep);
  // The tables of zstd take some KiB to hundreds of MiB, depending on the level.
  if (states_->zstd && ZSTD_sizeof_CCtx(states_->zstd.get()) > 4 * keep) states_->zstd.reset();
}

}  // namespace cframefs::codec
