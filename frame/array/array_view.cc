#include "frame/array/array_view.h"

#include <algorithm>
#include <utility>

#include "frame/numpy/bloscpack_numpy.h"
#include "frame/numpy/npy_header.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

class CArrayView final : public FlatView {
 public:
  CArrayView(std::shared_ptr<const Container> container, ArrayGeometry geometry, std::vector<std::uint8_t> head)
      : container_(std::move(container)), geometry_(std::move(geometry)), head_(std::move(head)) {}

  const Container& container() const override { return *container_; }
  std::uint64_t size() const override { return head_.size() + geometry_.nbytes(); }
  ByteView head() const override { return head_; }
  const ArrayGeometry* array_geometry() const override { return &geometry_; }

  Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const override {
    if (at.value > size() || length > size() - at.value) return codec::invalid("range past the end of the data");
    const std::uint64_t before = std::min(length, head_.size() - std::min<std::uint64_t>(at.value, head_.size()));
    const std::uint64_t from = at.value + before - head_.size();
    std::vector<Piece> found;
    const auto take_part = [&](const ArrayGeometry::Part& part) {
      return geometry_.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> Result<void> {
        for_each_run(tile.box, [&](std::uint64_t inner, std::uint64_t out) {
          found.push_back({part.chunk, static_cast<std::uint32_t>(tile.inner + inner),
                           static_cast<std::uint32_t>(tile.box.run), before + tile.out + out});
          return true;
        });
        return {};
      });
    };
    if (length > before) {
      if (auto done = geometry_.for_each_part(from, length - before, take_part); !done) return done;
    }
    std::sort(found.begin(), found.end(), [](const Piece& a, const Piece& b) { return a.out < b.out; });
    pieces.insert(pieces.end(), found.begin(), found.end());
    return {};
  }

  /// Finds holes of whole slabs of chunks along the first dimension, because only these are contiguous in C order.
  Result<FlatOffset> seek(FlatOffset from, bool hole) const override {
    const FlatOffset end{size()};
    if (from >= end) return end;
    if (from.value < head_.size()) {
      if (!hole) return from;
      from.value = head_.size();
      if (from >= end) return end;
    }
    const std::uint64_t bytes = geometry_.outer_slab_bytes();
    const std::uint64_t slab = (from.value - head_.size()) / bytes;
    const auto found = next_slab(slab, hole);
    if (!found) return Failure(found.error());
    if (*found == slab) return from;
    return std::min(end, FlatOffset{head_.size() + *found * bytes});
  }

 private:
  /// Returns the first slab from `slab` on that holds only zeros (`hole`) or that holds data (`!hole`), or the number
  /// of slabs if there is none.
  Result<std::uint64_t> next_slab(std::uint64_t slab, bool hole) const {
    const std::uint64_t chunks = geometry_.slab_chunks();
    const std::uint64_t slabs = geometry_.chunk_count() / chunks;
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

  const std::shared_ptr<const Container> container_;
  const ArrayGeometry geometry_;
  const std::vector<std::uint8_t> head_;
};

/// Returns the view of a container without an array metalayer. A NumPy array in a Bloscpack file is stored as one
/// contiguous buffer.
Result<std::shared_ptr<const FlatView>> plain_view(std::shared_ptr<const Container> container, ArrayForm form) {
  if (form != ArrayForm::npy) return chunk_order_view(std::move(container));
  const auto pack = numpy_pack_of(*container);
  if (!pack) return Failure(pack.error());
  if (!*pack) return chunk_order_view(std::move(container));
  return chunk_order_view(std::move(container), npy_header((*pack)->type, (*pack)->shape, (*pack)->fortran_order));
}

}  // namespace

std::vector<std::uint8_t> npy_head_of(const B2ndMeta& layer, std::uint64_t typesize) {
  auto type = layer.dtype ? parse_dtype(*layer.dtype) : std::nullopt;
  // C-Blosc2 writes '|u1' for items of any size if the program sets no dtype.
  if (!type || type->itemsize != typesize) type = opaque_type(typesize);
  return npy_header(*type, layer.shape);
}

Result<std::shared_ptr<const FlatView>> make_view(std::shared_ptr<const Container> container, ArrayForm form,
                                                  bool is_array) {
  if (form == ArrayForm::chunks) return chunk_order_view(std::move(container));
  const auto layer = b2nd_meta_of(*container);
  if (!layer) return Failure(layer.error());
  if (!*layer) {
    if (!is_array) return plain_view(std::move(container), form);
    if (const auto& damage = container->metalayer_damage()) return Failure(*damage);
    return corrupt("named like an array, but the metalayer 'b2nd' is missing");
  }
  const FrameParameters& parameters = container->parameters();
  auto geometry = ArrayGeometry::make(**layer, parameters);
  if (!geometry) return Failure(geometry.error());
  if (static_cast<std::uint64_t>(container->chunk_count()) != geometry->chunk_count()) {
    return corrupt("the array has " + std::to_string(geometry->chunk_count()) + " chunks, but the frame has " +
                   std::to_string(container->chunk_count()));
  }
  std::vector<std::uint8_t> head;
  if (form == ArrayForm::npy) head = npy_head_of(**layer, static_cast<std::uint64_t>(parameters.typesize));
  return std::make_shared<const CArrayView>(std::move(container), std::move(*geometry), std::move(head));
}

}  // namespace cframefs::frame
