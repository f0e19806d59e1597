#include "codec/base/scratch.h"

#include "codec/base/page_memory.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kGranularity = std::size_t{64} << 10;

}  // namespace

ByteSpan Scratch::get(std::size_t size) {
  if (size_ < size) {
    // Free the old buffer first: its contents need not survive, and two buffers at once would double the peak.
    trim(0);
    const std::size_t rounded = (size + kGranularity - 1) / kGranularity * kGranularity;
    bytes_ = std::make_unique_for_overwrite<std::uint8_t[]>(rounded);
    size_ = rounded;
    fault_in(bytes_.get(), size);
  }
  return {bytes_.get(), size_};
}

void Scratch::trim(std::size_t keep) {
  if (size_ <= keep) return;
  bytes_.reset();
  size_ = 0;
}

}  // namespace cframefs::codec
