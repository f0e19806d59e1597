#include "frame/array/flat_view.h"

#include <algorithm>
#include <utility>

namespace cframefs::frame {

using codec::Failure;

FlatView::FlatView(std::shared_ptr<const Container> container, std::vector<std::uint8_t> head)
    : container_(std::move(container)), head_(std::move(head)), layout_(ChunkOrder(*container_, head_.size())) {}

FlatView::FlatView(std::shared_ptr<const Container> container, ArrayGeometry array, std::vector<std::uint8_t> head)
    : container_(std::move(container)), head_(std::move(head)), layout_(std::move(array)) {}

std::uint64_t FlatView::size() const {
  return head_.size() + (array() != nullptr ? array()->nbytes() : container_->parameters().nbytes);
}

Result<FlatOffset> FlatView::seek(FlatOffset from, bool hole) const {
  const FlatOffset end{size()};
  if (from >= end) return end;
  if (from.value < head_.size()) {
    if (!hole) return from;
    from.value = head_.size();
    if (from >= end) return end;
  }
  const FlatOffset inner{from.value - head_.size()};
  auto found = array() != nullptr ? seek_slab(*array(), inner, hole) : seek_chunk(inner, hole);
  if (!found) return found;
  return std::min(end, FlatOffset{head_.size() + found->value});
}

/// Finds holes of whole chunks. Offsets are those in the concatenated chunks.
Result<FlatOffset> FlatView::seek_chunk(FlatOffset from, bool hole) const {
  const FrameParameters& parameters = container_->parameters();
  // Chunks of different sizes: at most one is not stored, and finding it would mean to read all chunk headers.
  if (parameters.variable_chunks) return hole ? FlatOffset{parameters.nbytes} : from;
  const auto here = container_->chunk_at(from);
  if (!here) return Failure(here.error());
  const auto found = container_->next_chunk(here->chunk, hole);
  if (!found) return Failure(found.error());
  if (*found == here->chunk) return from;
  if (found->value >= container_->chunk_count()) return FlatOffset{parameters.nbytes};
  return FlatOffset{static_cast<std::uint64_t>(found->value) * static_cast<std::uint64_t>(parameters.chunksize)};
}

/// Finds holes of whole slabs of chunks along the first dimension, because only these are contiguous in C order.
/// Offsets are those in the items.
Result<FlatOffset> FlatView::seek_slab(const ArrayGeometry& array, FlatOffset from, bool hole) const {
  const std::uint64_t bytes = array.outer_slab_bytes();
  const std::uint64_t slab = from.value / bytes;
  const auto found = next_slab(array, slab, hole);
  if (!found) return Failure(found.error());
  return *found == slab ? from : FlatOffset{*found * bytes};
}

/// Returns the first slab from `slab` on that holds only zeros (`hole`) or that holds data (`!hole`), or the number of
/// slabs if there is none.
Result<std::uint64_t> FlatView::next_slab(const ArrayGeometry& array, std::uint64_t slab, bool hole) const {
  const std::uint64_t chunks = array.slab_chunks();
  const std::uint64_t slabs = array.chunk_count() / chunks;
  while (slab < slabs) {
    const std::uint64_t first = slab * chunks;
    const auto data = container_->next_chunk(ChunkNumber{static_cast<std::int64_t>(first)}, false);
    if (!data) return Failure(data.error());
    const auto next_data = static_cast<std::uint64_t>(data->value);
    if (hole == (next_data - first >= chunks)) return slab;
    if (!hole) {
      slab = next_data / chunks;
      continue;
    }
    // This slab holds data. Skip to the next slab that could be a hole: it begins with a chunk of zeros.
    const auto zeros = container_->next_chunk(ChunkNumber{static_cast<std::int64_t>(first + chunks)}, true);
    if (!zeros) return Failure(zeros.error());
    slab = std::max(slab + 1, static_cast<std::uint64_t>(zeros->value) / chunks);
  }
  return slabs;
}

}  // namespace cframefs::frame
