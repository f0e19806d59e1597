#include "frame/array/array_scatter.h"

#include <utility>

namespace cframefs::frame {

namespace {

using Tile = ArrayGeometry::Tile;

/// Returns the box of the copy in the other direction, from the C-order bytes to the block.
StridedBox reversed(StridedBox box) {
  for (std::size_t i = 0; i < box.depth; ++i)
    std::swap(box.levels[i].from_stride, box.levels[i].to_stride);
  return box;
}

template <class Put>
Result<std::uint64_t> put_tiles(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at, std::uint64_t length,
                                Put put) {
  std::uint64_t bytes = 0;
  const auto put_part = [&](const ArrayGeometry::Part& part) {
    return array.for_each_tile(part, [&](const Tile& tile) -> Result<void> {
      put(tile);
      bytes += tile.box.volume();
      return {};
    });
  };
  if (auto done = array.for_each_part_in(chunk, at, length, put_part); !done) return codec::Failure(done.error());
  return bytes;
}

}  // namespace

Result<std::uint64_t> scatter(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at, ByteView from,
                              ByteSpan plain) {
  return put_tiles(array, chunk, at, from.size(), [&](const Tile& tile) {
    copy_box(reversed(tile.box), from.data() + tile.out, plain.data() + tile.inner);
  });
}

Result<std::uint64_t> scatter_zeros(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                    std::uint64_t length, ByteSpan plain) {
  return put_tiles(array, chunk, at, length,
                   [&](const Tile& tile) { clear_box(reversed(tile.box), plain.data() + tile.inner); });
}

Result<std::uint64_t> bytes_in_chunk(const ArrayGeometry& array, ChunkNumber chunk, std::uint64_t at,
                                     std::uint64_t length) {
  std::uint64_t bytes = 0;
  auto done = array.for_each_part_in(chunk, at, length, [&](const ArrayGeometry::Part& part) -> Result<void> {
    bytes += part.to.volume();
    return {};
  });
  if (!done) return codec::Failure(done.error());
  return bytes;
}

}  // namespace cframefs::frame
