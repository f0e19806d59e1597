#include "frame/array/array_view.h"

#include <utility>

#include "frame/numpy/bloscpack_numpy.h"
#include "frame/numpy/npy_header.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

/// Returns the view of a container without an array metalayer. A NumPy array in a Bloscpack file is stored as one
/// contiguous buffer.
Result<std::shared_ptr<const FlatView>> plain_view(std::shared_ptr<const Container> container, ArrayForm form) {
  if (form != ArrayForm::npy) return std::make_shared<const FlatView>(std::move(container));
  const auto pack = numpy_pack_of(*container);
  if (!pack) return Failure(pack.error());
  if (!*pack) return std::make_shared<const FlatView>(std::move(container));
  std::vector<std::uint8_t> head = npy_header((*pack)->type, (*pack)->shape, (*pack)->fortran_order);
  return std::make_shared<const FlatView>(std::move(container), std::move(head));
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
  if (form == ArrayForm::chunks) return std::make_shared<const FlatView>(std::move(container));
  const auto layer = b2nd_meta_of(*container);
  if (!layer) return Failure(layer.error());
  if (!*layer) {
    if (!is_array) return plain_view(std::move(container), form);
    if (const auto& damage = container->metalayer_damage()) return Failure(*damage);
    if (holds_file_bytes(*container)) return std::make_shared<const FlatView>(std::move(container));
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
  return std::make_shared<const FlatView>(std::move(container), std::move(*geometry), std::move(head));
}

}  // namespace cframefs::frame
