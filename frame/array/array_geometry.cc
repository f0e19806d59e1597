#include "frame/array/array_geometry.h"

#include <algorithm>
#include <limits>
#include <optional>
#include <string>
#include <utility>

#include <fmt/core.h>

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;

// Leaves room for a .npy header in the size of a file.
constexpr std::uint64_t kMaxBytes = std::uint64_t{1} << 62;
constexpr std::uint64_t kMaxChunkBytes = std::numeric_limits<std::int32_t>::max();

/// Returns a * b, or nullopt if the product exceeds `most`.
std::optional<std::uint64_t> product(std::uint64_t a, std::uint64_t b, std::uint64_t most) {
  if (b != 0 && a > most / b) return std::nullopt;
  return a * b;
}

std::uint64_t divide_up(std::uint64_t a, std::uint64_t b) {
  return a / b + (a % b != 0 ? 1 : 0);
}

/// Advances `at` through [begin, end) in C order. Returns false after the last position.
bool step(ArrayGeometry::Coordinates& at, const ArrayGeometry::Coordinates& begin,
          const ArrayGeometry::Coordinates& end, std::size_t count) {
  for (std::size_t d = count; d-- > 0;) {
    if (++at[d] < end[d]) return true;
    at[d] = begin[d];
  }
  return false;
}

}  // namespace

Result<ArrayGeometry> ArrayGeometry::make(const B2ndMeta& layer, const FrameParameters& parameters) {
  auto geometry = of_layer(layer, static_cast<std::uint64_t>(parameters.typesize));
  if (!geometry) return geometry;
  if (auto fits = geometry->check_frame(parameters); !fits) return Failure(fits.error());
  return geometry;
}

Result<ArrayGeometry> ArrayGeometry::of_layer(const B2ndMeta& layer, std::uint64_t typesize) {
  ArrayGeometry geometry;
  if (auto taken = geometry.parse_dimensions(layer, typesize); !taken) return Failure(taken.error());
  if (auto taken = geometry.compute_sizes(); !taken) return Failure(taken.error());
  return geometry;
}

Result<void> ArrayGeometry::parse_dimensions(const B2ndMeta& layer, std::uint64_t typesize) {
  const std::size_t ndim = layer.shape.size();
  const bool empty = std::find(layer.shape.begin(), layer.shape.end(), 0) != layer.shape.end();
  std::vector<Dimension> inner_first;
  std::uint64_t unit = typesize;  // factor of the extents: bytes of an item for the last dimension, 1 for the others
  for (std::size_t i = ndim; i-- > 0;) {
    const std::string which = fmt::format("dimension {} of the array", i);
    const std::int64_t shape = layer.shape[i];
    const std::int32_t chunk = layer.chunkshape[i];
    const std::int32_t block = layer.blockshape[i];
    if (shape < 0 || chunk < 0 || block < 0) return corrupt(which + " has a negative extent");
    if ((chunk == 0 || block == 0) && (shape != 0 || chunk != block)) {
      return corrupt(fmt::format("{} has a chunk extent of {} and a block extent of {}", which, chunk, block));
    }
    if (empty) continue;
    Dimension dimension;
    const auto scaled = product(static_cast<std::uint64_t>(shape), unit, kMaxBytes);
    const auto chunk_scaled = product(static_cast<std::uint64_t>(chunk), unit, kMaxChunkBytes);
    const auto block_scaled = product(static_cast<std::uint64_t>(block), unit, kMaxChunkBytes);
    if (!scaled || !chunk_scaled || !block_scaled) return corrupt(which + " is too large");
    dimension.shape = *scaled;
    dimension.chunk = *chunk_scaled;
    dimension.block = *block_scaled;
    unit = 1;
    // An inner dimension that is neither cut nor padded is merged with this one. A dimension of extent 1 is dropped.
    const bool is_unit = dimension.shape == 1 && dimension.chunk == 1 && dimension.block == 1;
    if (!inner_first.empty()) {
      Dimension& inner = inner_first.back();
      if (is_unit) continue;
      if (inner.shape == inner.chunk && inner.chunk == inner.block) {
        const auto wide = product(dimension.shape, inner.shape, kMaxBytes);
        const auto wide_chunk = product(dimension.chunk, inner.chunk, kMaxChunkBytes);
        const auto wide_block = product(dimension.block, inner.block, kMaxChunkBytes);
        if (!wide || !wide_chunk || !wide_block) return corrupt("the array is too large");
        inner.shape = *wide;
        inner.chunk = *wide_chunk;
        inner.block = *wide_block;
        continue;
      }
    }
    inner_first.push_back(dimension);
  }
  if (ndim == 0) inner_first.push_back(Dimension{typesize, typesize, typesize, 0, 0, 0, 0, 0, 0});
  dimensions_.assign(inner_first.rbegin(), inner_first.rend());
  return {};
}

Result<void> ArrayGeometry::compute_sizes() {
  if (dimensions_.empty()) return {};
  std::uint64_t bytes = 1;
  std::uint64_t chunks = 1;
  std::uint64_t chunk_bytes = 1;
  std::uint64_t block_bytes = 1;
  std::uint64_t blocks = 1;
  for (std::size_t d = dimensions_.size(); d-- > 0;) {
    Dimension& dimension = dimensions_[d];
    dimension.chunks = divide_up(dimension.shape, dimension.chunk);
    dimension.blocks = divide_up(dimension.chunk, dimension.block);
    dimension.flat_stride = bytes;
    dimension.chunk_step = chunks;
    dimension.block_step = blocks;
    dimension.block_stride = block_bytes;
    const auto all = product(bytes, dimension.shape, kMaxBytes);
    const auto all_chunks = product(chunks, dimension.chunks, kMaxBytes);
    const auto extended = product(dimension.blocks, dimension.block, kMaxChunkBytes);
    const auto all_chunk_bytes = extended ? product(chunk_bytes, *extended, kMaxChunkBytes) : std::nullopt;
    if (!all || !all_chunks || !all_chunk_bytes) return corrupt("the array's shapes are too large");
    bytes = *all;
    chunks = *all_chunks;
    chunk_bytes = *all_chunk_bytes;
    // No overflow: neither product exceeds the bytes of the chunk.
    block_bytes *= dimension.block;
    blocks *= dimension.blocks;
  }
  nbytes_ = bytes;
  chunk_count_ = chunks;
  chunk_bytes_ = static_cast<std::uint32_t>(chunk_bytes);
  block_bytes_ = static_cast<std::uint32_t>(block_bytes);
  row_blocks_ = static_cast<std::uint32_t>(dimensions_.back().blocks);
  return {};
}

Result<void> ArrayGeometry::check_frame(const FrameParameters& parameters) const {
  if (dimensions_.empty()) {
    if (parameters.nbytes != 0) {
      return corrupt(fmt::format("the array has no items, but the frame holds {} bytes", parameters.nbytes));
    }
    return {};
  }
  // Old frames do not record a chunk size. ChunkReader checks the size of each chunk when it reads the chunk.
  if (!parameters.variable_chunks && static_cast<std::int64_t>(chunk_bytes_) != parameters.chunksize) {
    return corrupt(
        fmt::format("a chunk of the array has {} bytes, a chunk of the frame {}", chunk_bytes_, parameters.chunksize));
  }
  const auto all_chunks = product(chunk_count_, chunk_bytes_, std::numeric_limits<std::uint64_t>::max());
  if (!all_chunks || *all_chunks != parameters.nbytes) {
    return corrupt(fmt::format("the array has {} chunks of {} bytes, but the frame holds {} bytes", chunk_count_,
                               chunk_bytes_, parameters.nbytes));
  }
  return {};
}

Result<void> ArrayGeometry::for_each_part(std::uint64_t at, std::uint64_t length, const VisitPart& visit) const {
  if (at > nbytes_ || length > nbytes_ - at) return codec::invalid("range past the end of the array");
  if (length == 0) return {};
  Box box;
  return for_each_box(0, box, at, at + length, [&](const Box& found) { return split_box(found, at, visit); });
}

Result<void> ArrayGeometry::for_each_part_in(ChunkNumber chunk, std::uint64_t at, std::uint64_t length,
                                             const VisitPart& visit) const {
  if (at > nbytes_ || length > nbytes_ - at) return codec::invalid("range past the end of the array");
  if (length == 0) return {};
  const Coordinates place = coordinates_of(chunk);
  Box box;
  return for_each_box(0, box, at, at + length, [&](const Box& found) -> Result<void> {
    for (std::size_t d = 0; d < dimensions_.size(); ++d) {
      const std::uint64_t origin = place[d] * dimensions_[d].chunk;
      if (found.end[d] <= origin || found.begin[d] >= origin + dimensions_[d].chunk) return {};
    }
    return visit(part_of(found, place, at));
  });
}

ArrayGeometry::Coordinates ArrayGeometry::coordinates_of(ChunkNumber chunk) const {
  Coordinates place{};
  auto rest = static_cast<std::uint64_t>(chunk.value);
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    place[d] = rest / dimensions_[d].chunk_step;
    rest %= dimensions_[d].chunk_step;
  }
  return place;
}

/// Splits C-order bytes [begin, end) into boxes: the rest of the first row, the whole rows, the begin of the last row.
/// The bytes count from the item at the coordinates of `box` before dimension `d`.
Result<void> ArrayGeometry::for_each_box(std::size_t d, Box& box, std::uint64_t begin, std::uint64_t end,
                                         const std::function<Result<void>(const Box&)>& visit) const {
  const std::uint64_t row = dimensions_[d].flat_stride;
  const auto inside = [&](std::uint64_t index, std::uint64_t from, std::uint64_t to) {
    box.begin[d] = index;
    box.end[d] = index + 1;
    return for_each_box(d + 1, box, from, to, visit);
  };
  std::uint64_t first = begin / row;
  const std::uint64_t last = end / row;
  if (begin % row != 0 || first == last) {
    const std::uint64_t stop = std::min(end - first * row, row);
    if (auto done = inside(first, begin - first * row, stop); !done) return done;
    ++first;
  }
  if (first < last) {
    box.begin[d] = first;
    box.end[d] = last;
    for (std::size_t i = d + 1; i < dimensions_.size(); ++i) {
      box.begin[i] = 0;
      box.end[i] = dimensions_[i].shape;
    }
    if (auto done = visit(box); !done) return done;
  }
  if (last >= first && end % row != 0) return inside(last, 0, end - last * row);
  return {};
}

Result<void> ArrayGeometry::split_box(const Box& box, std::uint64_t at, const VisitPart& visit) const {
  Coordinates first{};
  Coordinates last{};
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    first[d] = box.begin[d] / dimensions_[d].chunk;
    last[d] = (box.end[d] - 1) / dimensions_[d].chunk + 1;
  }
  Coordinates chunk = first;
  do {
    if (auto done = visit(part_of(box, chunk, at)); !done) return done;
  } while (step(chunk, first, last, dimensions_.size()));
  return {};
}

ArrayGeometry::Part ArrayGeometry::part_of(const Box& box, const Coordinates& chunk, std::uint64_t at) const {
  Part part;
  std::uint64_t flat = 0;
  std::uint64_t number = 0;
  part.to.run = 1;
  for (std::size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    part.origin[d] = chunk[d] * dimension.chunk;
    part.begin[d] = std::max(box.begin[d], part.origin[d]) - part.origin[d];
    part.end[d] = std::min(box.end[d] - part.origin[d], dimension.chunk);
    flat += (part.origin[d] + part.begin[d]) * dimension.flat_stride;
    number += chunk[d] * dimension.chunk_step;
    // from_stride has no meaning here. Equal strides let wrap() merge levels.
    part.to.wrap({part.end[d] - part.begin[d], dimension.flat_stride, dimension.flat_stride});
  }
  part.to.finish();
  part.chunk = ChunkNumber{static_cast<std::int64_t>(number)};
  part.out = flat - at;
  return part;
}

Result<void> ArrayGeometry::for_each_tile(const Part& part, const VisitTile& visit) const {
  Coordinates first{};
  Coordinates last{};
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    first[d] = part.begin[d] / dimensions_[d].block;
    last[d] = (part.end[d] - 1) / dimensions_[d].block + 1;
  }
  Coordinates block = first;
  do {
    if (auto done = visit(tile_of(part, block)); !done) return done;
  } while (step(block, first, last, dimensions_.size()));
  return {};
}

ArrayGeometry::Tile ArrayGeometry::tile_of(const Part& part, const Coordinates& block) const {
  Tile tile;
  tile.box.run = 1;
  tile.out = part.out;
  std::uint64_t number = 0;
  std::uint64_t inside = 0;
  for (std::size_t d = dimensions_.size(); d-- > 0;) {
    const Dimension& dimension = dimensions_[d];
    const std::uint64_t origin = block[d] * dimension.block;
    const std::uint64_t begin = std::max(part.begin[d], origin);
    const std::uint64_t end = std::min(part.end[d], origin + dimension.block);
    number += block[d] * dimension.block_step;
    inside += (begin - origin) * dimension.block_stride;
    tile.out += (begin - part.begin[d]) * dimension.flat_stride;
    tile.box.wrap({end - begin, dimension.block_stride, dimension.flat_stride});
  }
  tile.box.finish();
  tile.block = static_cast<std::uint32_t>(number);
  tile.inner = static_cast<std::uint32_t>(number * block_bytes_ + inside);
  return tile;
}

std::uint64_t ArrayGeometry::item_bytes(const Coordinates& origin, std::uint32_t first, std::uint32_t count,
                                        const BlockRows& rows) const {
  std::uint64_t bytes = 1;
  std::uint64_t rest = first;
  const std::size_t slab = slab_dimension();
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const Dimension& dimension = dimensions_[d];
    std::uint64_t begin = rest / dimension.block_step * dimension.block;
    rest %= dimension.block_step;
    const std::uint64_t blocks = d + 1 == dimensions_.size() ? count : 1;
    std::uint64_t end = std::min({begin + blocks * dimension.block, dimension.chunk, dimension.shape - origin[d]});
    if (d == slab && rows.end < dimension.block) end = std::min(end, begin + rows.end);
    if (d == slab) begin += rows.begin;
    bytes *= end > begin ? end - begin : 0;
  }
  return bytes;
}

std::uint64_t ArrayGeometry::item_bytes(ChunkNumber chunk) const {
  const Coordinates place = coordinates_of(chunk);
  std::uint64_t bytes = 1;
  for (std::size_t d = 0; d < dimensions_.size(); ++d) {
    const Dimension& dimension = dimensions_[d];
    bytes *= std::min(dimension.chunk, dimension.shape - place[d] * dimension.chunk);
  }
  return bytes;
}

std::size_t ArrayGeometry::slab_dimension() const {
  std::size_t d = 0;
  while (d + 1 < dimensions_.size() && dimensions_[d].block == 1)
    ++d;
  return d;
}

std::uint64_t ArrayGeometry::slab_bytes() const {
  if (dimensions_.empty()) return 0;
  const Dimension& slab = dimensions_[slab_dimension()];
  return slab.block * slab.flat_stride;
}

std::uint64_t ArrayGeometry::slab_block_bytes() const {
  if (dimensions_.empty()) return 0;
  std::uint64_t bytes = block_bytes_;
  for (std::size_t d = slab_dimension() + 1; d < dimensions_.size(); ++d) {
    const auto more = product(bytes, dimensions_[d].chunks * dimensions_[d].blocks, kMaxBytes);
    if (!more) return kMaxBytes;
    bytes = *more;
  }
  return bytes;
}

std::uint64_t ArrayGeometry::block_rows() const {
  return dimensions_.empty() ? 0 : dimensions_[slab_dimension()].block;
}

std::uint64_t ArrayGeometry::block_row_bytes() const {
  return dimensions_.empty() ? 0 : dimensions_[slab_dimension()].block_stride;
}

Result<void> ArrayGeometry::for_each_band(const Part& part, std::uint64_t rows, const VisitBand& visit) const {
  const std::size_t d = slab_dimension();
  const Dimension& slab = dimensions_[d];
  Part piece = part;
  for (std::uint64_t begin = part.begin[d]; begin < part.end[d]; begin = piece.end[d]) {
    const std::uint64_t row = begin % slab.block;
    const std::uint64_t band = row / rows;
    piece.begin[d] = begin;
    piece.end[d] = std::min(part.end[d], begin - row + std::min((band + 1) * rows, slab.block));
    piece.out = part.out + (begin - part.begin[d]) * slab.flat_stride;
    if (auto done = visit(piece, static_cast<std::uint32_t>(band)); !done) return done;
  }
  return {};
}

std::uint64_t ArrayGeometry::slab_chunks() const {
  return dimensions_.empty() ? 0 : dimensions_[0].chunk_step;
}

std::uint64_t ArrayGeometry::outer_slab_bytes() const {
  return dimensions_.empty() ? 0 : dimensions_[0].chunk * dimensions_[0].flat_stride;
}

}  // namespace cframefs::frame
