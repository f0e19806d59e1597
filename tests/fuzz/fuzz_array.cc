// The metalayer of arrays, the header made from it, the mapping of ranges to boxes, and writing a range into chunks and
// gathering it again. The first byte of the input is the typesize (0: 256), the second says where a range begins, the
// rest is the metalayer.
#include <algorithm>
#include <limits>
#include <set>
#include <utility>
#include <vector>

#include "frame/array/array_geometry.h"
#include "frame/array/array_scatter.h"
#include "frame/numpy/npy_header.h"
#include "tests/fuzz/fuzz_check.h"
#include "tests/fuzz/fuzz_target.h"

namespace {

using namespace cframefs;

constexpr std::uint64_t kRange = 2000;
// Chunks that are made to be written to.
constexpr std::uint32_t kChunkBytes = 1 << 16;
constexpr std::size_t kMaxChunks = 16;

/// The product, or 0 where it is above 2^31: no frame has such chunks.
std::uint64_t small_product(std::uint64_t a, std::uint64_t b) {
  constexpr std::uint64_t kMost = std::numeric_limits<std::int32_t>::max();
  return b != 0 && a > kMost / b ? 0 : a * b;
}

/// A frame as this array would need it, as far as there can be one.
frame::FrameParameters fitting(const frame::B2ndMeta& layer, std::int32_t typesize) {
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

/// A part cut into bands is the same part.
void check_bands(const frame::ArrayGeometry& array, const frame::ArrayGeometry::Part& part) {
  const std::uint64_t rows = std::max<std::uint64_t>(array.block_rows() / 3, 1);
  const std::uint64_t band_bytes = rows * array.block_row_bytes();
  std::uint64_t bytes = 0;
  const auto done = array.for_each_band(part, rows, [&](const frame::ArrayGeometry::Part& piece, std::uint32_t band) {
    return array.for_each_tile(piece, [&](const frame::ArrayGeometry::Tile& tile) -> codec::Result<void> {
      const std::uint64_t within = tile.inner - std::uint64_t{tile.block} * array.block_bytes();
      FUZZ_CHECK(within / band_bytes == band && (within + tile.box.from_span() - 1) / band_bytes == band);
      const frame::BlockRows of_band{band * rows, std::min((band + 1) * rows, array.block_rows())};
      FUZZ_CHECK(array.item_bytes(piece.origin, tile.block, 1, of_band) >= tile.box.volume());
      bytes += tile.box.volume();
      return {};
    });
  });
  FUZZ_CHECK(done.has_value());
  FUZZ_CHECK(bytes == part.to.volume());
}

void map_range(const frame::ArrayGeometry& array, std::uint64_t begin, std::uint64_t length) {
  std::uint64_t bytes = 0;
  const auto done = array.for_each_part(begin, length, [&](const frame::ArrayGeometry::Part& part) {
    FUZZ_CHECK(part.chunk.value >= 0 && static_cast<std::uint64_t>(part.chunk.value) < array.chunk_count());
    FUZZ_CHECK(part.out < length && part.to.volume() <= length - part.out);
    check_bands(array, part);
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

/// What is written into a chunk comes back from there, and nothing else changes.
std::uint64_t scatter_and_gather(const frame::ArrayGeometry& array, frame::ChunkNumber chunk, std::uint64_t begin,
                                 codec::ByteView from) {
  constexpr std::uint8_t kOld = 0xa5;  // is not in `from`
  std::vector<std::uint8_t> plain(array.chunk_bytes(), kOld);
  const auto put = frame::scatter(array, chunk, begin, from, plain);
  FUZZ_CHECK(put.has_value());
  const auto counted = frame::bytes_in_chunk(array, chunk, begin, from.size());
  FUZZ_CHECK(counted.has_value() && *counted == *put);
  const auto old = static_cast<std::uint64_t>(std::count(plain.begin(), plain.end(), kOld));
  FUZZ_CHECK(plain.size() - old == *put);
  std::vector<std::uint8_t> gathered(from.size(), kOld);
  const auto done = array.for_each_part_in(chunk, begin, from.size(), [&](const frame::ArrayGeometry::Part& part) {
    FUZZ_CHECK(part.chunk == chunk);
    return array.for_each_tile(part, [&](const frame::ArrayGeometry::Tile& tile) -> codec::Result<void> {
      frame::copy_box(tile.box, plain.data() + tile.inner, gathered.data() + tile.out);
      return {};
    });
  });
  FUZZ_CHECK(done.has_value());
  for (std::size_t i = 0; i < from.size(); ++i)
    FUZZ_CHECK(gathered[i] == kOld || gathered[i] == from[i]);
  const auto cleared = frame::scatter_zeros(array, chunk, begin, from.size(), plain);
  FUZZ_CHECK(cleared.has_value() && *cleared == *put);
  FUZZ_CHECK(static_cast<std::uint64_t>(std::count(plain.begin(), plain.end(), std::uint8_t{0})) == *put);
  return *put;
}

void write_range(const frame::ArrayGeometry& array, std::uint64_t begin, std::uint64_t length) {
  if (array.chunk_bytes() > kChunkBytes) return;
  std::vector<std::uint8_t> from(static_cast<std::size_t>(length));
  for (std::size_t i = 0; i < from.size(); ++i)
    from[i] = static_cast<std::uint8_t>(1 + i % 0x60);
  std::set<std::int64_t> chunks;
  const auto noted = array.for_each_part(begin, length, [&](const frame::ArrayGeometry::Part& part) {
    chunks.insert(part.chunk.value);
    return codec::Result<void>();
  });
  FUZZ_CHECK(noted.has_value());
  if (chunks.size() > kMaxChunks) return;
  std::uint64_t bytes = 0;
  for (const std::int64_t chunk : chunks)
    bytes += scatter_and_gather(array, frame::ChunkNumber{chunk}, begin, from);
  FUZZ_CHECK(bytes == length);
}

}  // namespace

FUZZ_TARGET(array)(const std::uint8_t* data, std::size_t size) {
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
  const std::uint64_t end = array->nbytes() - std::min(array->nbytes(), kRange);
  for (const std::uint64_t from : {begin, end}) {
    const std::uint64_t length = std::min(array->nbytes() - from, kRange);
    map_range(*array, from, length);
    write_range(*array, from, length);
  }
  FUZZ_CHECK(array->slab_bytes() == 0 || array->slab_block_bytes() > 0);
  return 0;
}
