// The metalayer of arrays, the header made from it and the mapping of ranges to boxes. The first byte of the input is
// the typesize (0: 256), the second says where a range begins, the rest is the metalayer.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "frame/array_geometry.h"
#include "frame/npy_header.h"
#include "tests/fuzz/fuzz_check.h"

namespace {

using namespace cframefs;

constexpr std::uint64_t kRange = 2000;

/// The product, or 0 where it is above 2^31: no frame has such chunks.
std::uint64_t small_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  return b != 0 && a > kMost / b ? 0 : a * b;
}

/// A frame as this array would need it, as far as there can be one.
frame::FrameParameters fitting(const frame::ArrayLayer& layer, std::int32_t typesize) {
  frame::FrameParameters parameters;
  parameters.typesize = typesize;
  auto chunk = static_cast<std::uint64_t>(typesize);
  std::uint64_t chunks = 1;
  for (std::size_t d = 0; d < layer.shape.size(); ++d) {
    const std::int64_t shape = layer.shape[d];
    const std::int64_t extent = layer.chunkshape[d];
    const std::int64_t block = layer.blockshape[d];
    if (shape <= 0 || extent <= 0 || block <= 0) return parameters;
    chunk = small_product(chunk, static_cast<std::uint64_t>((extent + block - 1) / block * block));
    chunks = small_product(chunks, static_cast<std::uint64_t>((shape - 1) / extent + 1));
  }
  parameters.chunksize = static_cast<std::int32_t>(chunk);
  parameters.nbytes = chunk * chunks;
  return parameters;
}

void map_range(const frame::ArrayGeometry& array, std::uint64_t begin, std::uint64_t length) {
  std::uint64_t bytes = 0;
  const auto done = array.for_each_part(begin, length, [&](const frame::ArrayGeometry::Part& part) {
    FUZZ_CHECK(part.chunk.value >= 0 && static_cast<std::uint64_t>(part.chunk.value) < array.chunk_count());
    FUZZ_CHECK(part.out < length && part.to.volume() <= length - part.out);
    return array.for_each_tile(part, [&](const frame::ArrayGeometry::Tile& tile) -> codec::Result<void> {
      const std::uint64_t within = tile.inner - std::uint64_t{tile.block} * array.block_bytes();
      FUZZ_CHECK(tile.inner < array.chunk_bytes() && within < array.block_bytes());
      FUZZ_CHECK(tile.box.from_span() <= array.block_bytes() - within);
      frame::for_each_run(tile.box, [&](std::uint64_t from, std::uint64_t to) {
        FUZZ_CHECK(from + tile.box.run <= tile.box.from_span());
        FUZZ_CHECK(tile.out + to + tile.box.run <= length);
        return true;
      });
      bytes += tile.box.volume();
      FUZZ_CHECK(array.item_bytes(part.origin, tile.block, 1) >= tile.box.volume());
      return {};
    });
  });
  FUZZ_CHECK(done.has_value());
  FUZZ_CHECK(bytes == length);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size < 2) return 0;
  const std::int32_t typesize = data[0] == 0 ? 256 : data[0];
  const auto layer = frame::parse_array_layer(codec::ByteView(data + 2, size - 2));
  if (!layer) return 0;
  if (layer->dtype) {
    const auto type = frame::parse_dtype(*layer->dtype);
    const auto header = frame::npy_header(type.value_or(frame::opaque_type(1)), layer->shape);
    FUZZ_CHECK(header.size() % 64 == 0);
  }
  const auto array = frame::ArrayGeometry::make(*layer, fitting(*layer, typesize));
  if (!array) return 0;
  const std::uint64_t begin = array->nbytes() / 256 * data[1];
  map_range(*array, begin, std::min(array->nbytes() - begin, kRange));
  const std::uint64_t end = array->nbytes() - std::min(array->nbytes(), kRange);
  map_range(*array, end, array->nbytes() - end);
  FUZZ_CHECK(array->slab_bytes() == 0 || array->slab_block_bytes() > 0);
  return 0;
}
