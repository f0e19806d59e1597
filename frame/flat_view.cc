#include "frame/flat_view.h"

#include <algorithm>
#include <utility>

namespace cframefs::frame {

namespace {

using codec::Failure;

class ChunkOrderView final : public FlatView {
 public:
  explicit ChunkOrderView(std::shared_ptr<const Container> container) : container_(std::move(container)) {}

  const Container& container() const override { return *container_; }
  std::uint64_t size() const override { return container_->parameters().nbytes; }

  Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const override {
    if (at.value > size() || length > size() - at.value) return codec::invalid("range past the end of the data");
    for (std::uint64_t done = 0; done < length;) {
      const FlatOffset here{at.value + done};
      const auto span = container_->locate(here);
      if (!span) return Failure(span.error());
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

  Result<FlatOffset> seek(FlatOffset from, bool hole) const override {
    const FlatOffset end{size()};
    if (from >= end) return end;
    const FrameParameters& parameters = container_->parameters();
    // Chunks of different sizes: at most one of them is not stored, and finding it would cost a look at all.
    if (parameters.variable_chunks) return hole ? end : from;
    const auto here = container_->locate(from);
    if (!here) return Failure(here.error());
    const auto found = container_->next_chunk(here->chunk, hole);
    if (!found) return Failure(found.error());
    if (*found == here->chunk) return from;
    if (found->value >= container_->chunk_count()) return end;
    return FlatOffset{static_cast<std::uint64_t>(found->value) * static_cast<std::uint64_t>(parameters.chunksize)};
  }

 private:
  const std::shared_ptr<const Container> container_;
};

}  // namespace

std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container) {
  return std::make_shared<const ChunkOrderView>(std::move(container));
}

}  // namespace cframefs::frame
