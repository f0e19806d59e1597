#include "frame/array/growable_array.h"

#include <algorithm>
#include <cerrno>
#include <limits>
#include <utility>

#include "codec/base/bytes.h"
#include "frame/array/array_view.h"
#include "frame/cframe/index_encoder.h"

namespace cframefs::frame {

namespace {

using codec::Failure;

/// Offset of the first extent in the metalayer's content. Before it: the markers of the outer list, of the shape and of
/// the extent, the version, and the number of dimensions.
constexpr std::size_t kFirstExtentAt = 5;

Failure too_large() {
  return codec::io_error(EFBIG, "array", "more rows than the chunks of a frame can hold");
}

}  // namespace

Result<std::optional<GrowableArray>> GrowableArray::of(const Container& container) {
  auto layer = b2nd_meta_of(container);
  if (!layer) return Failure(layer.error());
  if (!*layer) return std::optional<GrowableArray>();
  auto metalayer = array_metalayer_of(container);
  if (!metalayer) return Failure(metalayer.error());
  GrowableArray array;
  array.layer_ = std::move(**layer);
  array.layer_name_ = std::move((*metalayer)->name);
  array.content_ = std::move((*metalayer)->content);
  array.typesize_ = static_cast<std::uint64_t>(container.parameters().typesize);
  // The geometry of one row tells the bytes of rows, blocks and chunks even if the array has no rows.
  B2ndMeta one = array.layer_;
  if (!one.shape.empty()) one.shape[0] = 1;
  const bool has_extent = one.shape.empty() || (one.chunkshape[0] > 0 && one.blockshape[0] > 0);
  if (!has_extent) return std::optional(std::move(array));
  const auto geometry = ArrayGeometry::of_layer(one, array.typesize_);
  if (!geometry) return Failure(geometry.error());
  if (!one.shape.empty()) array.row_bytes_ = geometry->nbytes();
  array.block_bytes_ = geometry->block_bytes();
  array.chunk_bytes_ = geometry->chunk_bytes();
  return std::optional(std::move(array));
}

bool GrowableArray::can_change() const {
  return row_bytes_ > 0;
}

B2ndMeta GrowableArray::with_rows(std::uint64_t rows) const {
  B2ndMeta layer = layer_;
  if (!layer.shape.empty()) layer.shape[0] = static_cast<std::int64_t>(rows);
  return layer;
}

Result<ArrayGeometry> GrowableArray::geometry(std::uint64_t rows) const {
  if (rows > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max())) return too_large();
  auto geometry = ArrayGeometry::of_layer(with_rows(rows), typesize_);
  // The other extents are those of an existing array, so an error means that there are too many rows.
  if (!geometry || geometry->chunk_count() > static_cast<std::uint64_t>(IndexEncoder::kMaxEntries)) return too_large();
  return geometry;
}

std::vector<std::uint8_t> GrowableArray::layer_content(std::uint64_t rows) const {
  std::vector<std::uint8_t> content = content_;
  if (!layer_.shape.empty()) codec::store_be(&content[kFirstExtentAt], static_cast<std::int64_t>(rows));
  return content;
}

std::vector<std::uint8_t> GrowableArray::npy_head(std::uint64_t rows) const {
  return npy_head_of(with_rows(rows), typesize_);
}

}  // namespace cframefs::frame
