#include "frame/container/chunk_order.h"

#include <algorithm>
#include <string>

namespace cframefs::frame {

Result<void> ChunkOrder::map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const {
  const std::uint64_t size = head_ + container_->parameters().nbytes;
  if (at.value > size || length > size - at.value)
    return codec::invalid("the range ends past the size of " + std::to_string(size) + " bytes");
  for (std::uint64_t done = std::min(length, head_ - std::min(at.value, head_)); done < length;) {
    const FlatOffset here{at.value + done - head_};
    const auto span = container_->chunk_at(here);
    if (!span) return codec::Failure(span.error());
    Piece piece;
    piece.chunk = span->chunk;
    piece.inner = static_cast<std::uint32_t>(here.value - span->begin.value);
    piece.length = static_cast<std::uint32_t>(std::min<std::uint64_t>(span->nbytes - piece.inner, length - done));
    piece.out = done;
    pieces.push_back(piece);
    done += piece.length;
  }
  return {};
}

}  // namespace cframefs::frame
