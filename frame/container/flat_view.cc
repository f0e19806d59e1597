#include "frame/container/flat_view.h"

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
    if (at.value > size() || length > size() - at.value)
      return codec::invalid("the range ends past the size of " + std::to_string(size()) + " bytes");
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
    // Chunks of different sizes: at most one is not stored, and finding it would mean to read all chunk headers.
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

class PrefixedView final : public FlatView {
 public:
  PrefixedView(std::shared_ptr<const Container> container, std::vector<std::uint8_t> head)
      : chunks_(std::move(container)), head_(std::move(head)) {}

  const Container& container() const override { return chunks_.container(); }
  std::uint64_t size() const override { return head_.size() + chunks_.size(); }
  ByteView head() const override { return head_; }

  Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const override {
    if (at.value > size() || length > size() - at.value)
      return codec::invalid("the range ends past the size of " + std::to_string(size()) + " bytes");
    const std::uint64_t before = std::min(length, head_.size() - std::min<std::uint64_t>(at.value, head_.size()));
    if (before == length) return {};
    const std::size_t first = pieces.size();
    auto mapped = chunks_.map(FlatOffset{at.value + before - head_.size()}, length - before, pieces);
    for (std::size_t i = first; i < pieces.size(); ++i)
      pieces[i].out += before;
    return mapped;
  }

  Result<FlatOffset> seek(FlatOffset from, bool hole) const override {
    if (!hole && from.value < head_.size()) return from;
    const std::uint64_t inner = std::max<std::uint64_t>(from.value, head_.size()) - head_.size();
    auto found = chunks_.seek(FlatOffset{inner}, hole);
    if (!found) return found;
    return FlatOffset{found->value + head_.size()};
  }

 private:
  const ChunkOrderView chunks_;
  const std::vector<std::uint8_t> head_;
};

}  // namespace

std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container) {
  return std::make_shared<const ChunkOrderView>(std::move(container));
}

std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container,
                                                 std::vector<std::uint8_t> head) {
  return std::make_shared<const PrefixedView>(std::move(container), std::move(head));
}

}  // namespace cframefs::frame
