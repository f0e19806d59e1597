#include "tools/stream/container_input.h"

#include <algorithm>

#include <fmt/core.h>

namespace cframefs::tools {

using codec::Failure;
using codec::Result;

/// Opens the chunk that contains byte at_ as reader_. REQUIRES: at_ is within the container.
Result<void> ContainerInput::find_chunk() {
  if (reader_ && at_ >= span_.begin.value && at_ - span_.begin.value < span_.nbytes) return {};
  const auto span = container_->chunk_at(frame::FlatOffset{at_});
  if (!span) return Failure(span.error());
  auto reader = frame::ChunkReader::open(*container_, span->chunk);
  if (!reader) return Failure(reader.error());
  if ((*reader)->decoder().nbytes() != span->nbytes) {
    return codec::corrupt(fmt::format("chunk {} has {} bytes, must have {}", span->chunk.value,
                                      (*reader)->decoder().nbytes(), span->nbytes));
  }
  span_ = *span;
  reader_ = std::move(*reader);
  return {};
}

Result<std::size_t> ContainerInput::read(codec::ByteSpan into) {
  std::size_t filled = 0;
  while (filled < into.size() && at_ < container_->parameters().nbytes) {
    if (auto found = find_chunk(); !found) return Failure(found.error());
    const std::uint64_t inner = at_ - span_.begin.value;
    const auto size = static_cast<std::size_t>(std::min<std::uint64_t>(into.size() - filled, span_.nbytes - inner));
    const codec::ByteSpan part = into.subspan(filled, size);
    if (reader_->storage() == frame::Storage::zeros) {
      std::fill(part.begin(), part.end(), std::uint8_t{0});
    } else if (auto decoded = decoder_.decode(*reader_, static_cast<std::uint32_t>(inner), part); !decoded) {
      return Failure(decoded.error());
    }
    filled += size;
    at_ += size;
  }
  return filled;
}

}  // namespace cframefs::tools
