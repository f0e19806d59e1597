#include "codec/decode_context.h"

#include <array>
#include <utility>

#include "codec/codec_states.h"
#include "codec/page_memory.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kSlots = 4;
constexpr std::size_t kGranularity = std::size_t{64} << 10;

struct Buffer {
  std::unique_ptr<std::uint8_t[]> bytes;
  std::size_t size = 0;
};

}  // namespace

struct DecodeContext::Scratch {
  std::array<Buffer, kSlots> buffers;
};

DecodeContext::DecodeContext() : scratch_(std::make_unique<Scratch>()), states_(std::make_unique<CodecStates>()) {}
DecodeContext::~DecodeContext() = default;

ByteSpan DecodeContext::scratch(Slot slot, std::size_t size) {
  Buffer& buffer = scratch_->buffers[static_cast<std::size_t>(slot)];
  if (buffer.size < size) {
    // Given back first: the contents need not survive, and two buffers at once would double the peak.
    buffer = {};
    const std::size_t rounded = (size + kGranularity - 1) / kGranularity * kGranularity;
    buffer.bytes = std::make_unique_for_overwrite<std::uint8_t[]>(rounded);
    buffer.size = rounded;
    fault_in(buffer.bytes.get(), size);
  }
  return {buffer.bytes.get(), buffer.size};
}

void DecodeContext::trim(std::size_t keep) {
  for (Buffer& buffer : scratch_->buffers) {
    if (buffer.size > keep) buffer = {};
  }
}

ContextPool::Lease::~Lease() {
  if (context_) pool_->release(std::move(context_));
}

ContextPool::Lease ContextPool::acquire() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<DecodeContext> context = std::move(idle_.back());
      idle_.pop_back();
      return {*this, std::move(context)};
    }
  }
  return {*this, std::make_unique<DecodeContext>()};
}

void ContextPool::release(std::unique_ptr<DecodeContext> context) {
  context->trim(keep_);
  const std::lock_guard lock(mutex_);
  idle_.push_back(std::move(context));
}

}  // namespace cframefs::codec
