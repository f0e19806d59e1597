#include "tests/support/array_builder.h"

#include <algorithm>

namespace cframefs::test {

namespace {

using Coordinates = std::vector<std::int64_t>;

std::int64_t product(const Coordinates& extents) {
  std::int64_t all = 1;
  for (const std::int64_t extent : extents)
    all *= extent;
  return all;
}

/// The coordinates of number `index` in a box of these extents, the last running fastest.
Coordinates unfold(std::int64_t index, const Coordinates& extents) {
  Coordinates at(extents.size());
  for (std::size_t d = extents.size(); d-- > 0;) {
    at[d] = index % extents[d];
    index /= extents[d];
  }
  return at;
}

/// How many `parts` it takes to cover each extent; none of no extent.
Coordinates counts(const Coordinates& extents, const Coordinates& parts) {
  Coordinates found(extents.size());
  for (std::size_t d = 0; d < extents.size(); ++d)
    found[d] = parts[d] == 0 ? 0 : (extents[d] + parts[d] - 1) / parts[d];
  return found;
}

Coordinates wide(const std::vector<std::int32_t>& extents) {
  return {extents.begin(), extents.end()};
}

}  // namespace

std::int64_t ArraySpec::item_count() const {
  return product(shape);
}

std::int64_t ArraySpec::chunk_count() const {
  return item_count() == 0 ? 0 : product(counts(shape, wide(chunkshape)));
}

std::int32_t ArraySpec::block_bytes() const {
  return static_cast<std::int32_t>(product(wide(blockshape))) * typesize;
}

std::int32_t ArraySpec::chunk_bytes() const {
  return static_cast<std::int32_t>(product(counts(wide(chunkshape), wide(blockshape)))) * block_bytes();
}

Bytes array_layer(const ArraySpec& spec) {
  const auto ndim = static_cast<std::uint8_t>(spec.shape.size());
  const auto list = static_cast<std::uint8_t>(0x90 + ndim);
  Bytes layer = {static_cast<std::uint8_t>(spec.dtype ? 0x97 : 0x95), 0, ndim, list};
  for (const std::int64_t extent : spec.shape) {
    layer.push_back(0xd3);
    append_be(layer, extent);
  }
  for (const auto* extents : {&spec.chunkshape, &spec.blockshape}) {
    layer.push_back(list);
    for (const std::int32_t extent : *extents) {
      layer.push_back(0xd2);
      append_be(layer, extent);
    }
  }
  if (spec.dtype) {
    layer.push_back(0);
    layer.push_back(0xdb);
    append_be(layer, static_cast<std::uint32_t>(spec.dtype->size()));
    for (const char c : *spec.dtype)
      layer.push_back(static_cast<std::uint8_t>(c));
  }
  return layer;
}

std::vector<Bytes> array_chunks(const ArraySpec& spec, codec::ByteView items) {
  const auto typesize = static_cast<std::size_t>(spec.typesize);
  const Coordinates block = wide(spec.blockshape);
  const Coordinates chunk = wide(spec.chunkshape);
  const Coordinates chunks = spec.item_count() == 0 ? Coordinates() : counts(spec.shape, chunk);
  const Coordinates blocks = spec.item_count() == 0 ? Coordinates() : counts(chunk, block);
  // Items that lie next to each other both in a block and in the array: a line along the last dimension.
  Coordinates lines = block;
  if (!lines.empty()) lines.back() = 1;
  const auto line_bytes = block.empty() ? typesize : static_cast<std::size_t>(block.back()) * typesize;
  std::vector<Bytes> found;
  for (std::int64_t c = 0; c < spec.chunk_count(); ++c) {
    const Coordinates chunk_at = unfold(c, chunks);
    Bytes bytes(static_cast<std::size_t>(spec.chunk_bytes()), 0xcc);
    std::size_t at = 0;
    for (std::int64_t b = 0; b < product(blocks); ++b) {
      const Coordinates block_at = unfold(b, blocks);
      for (std::int64_t l = 0; l < product(lines); ++l, at += line_bytes) {
        const Coordinates line_at = unfold(l, lines);
        std::int64_t linear = 0;
        std::int64_t inside = 1;  // items of the line that are not padding
        for (std::size_t d = 0; d < block.size(); ++d) {
          const std::int64_t within = block_at[d] * block[d] + line_at[d];
          const std::int64_t x = chunk_at[d] * chunk[d] + within;
          const std::int64_t room = std::max<std::int64_t>(0, std::min(chunk[d] - within, spec.shape[d] - x));
          const std::int64_t wanted = d + 1 == block.size() ? block[d] : 1;
          inside *= std::min(room, wanted);
          linear = linear * spec.shape[d] + x;
        }
        if (inside == 0) continue;
        const codec::ByteView items_of_line =
            items.subspan(static_cast<std::size_t>(linear) * typesize, static_cast<std::size_t>(inside) * typesize);
        std::copy(items_of_line.begin(), items_of_line.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at));
      }
    }
    found.push_back(std::move(bytes));
  }
  return found;
}

FrameBuilder array_frame(const ArraySpec& spec, codec::ByteView items,
                         const std::function<ArrayChunk(std::int64_t chunk)>& kind) {
  FrameBuilder frame;
  frame.typesize = spec.typesize;
  frame.blocksize = spec.block_bytes();
  frame.chunksize = spec.chunk_count() == 0 && spec.chunk_bytes() == 0 ? -1 : spec.chunk_bytes();
  frame.nbytes = spec.chunk_count() * spec.chunk_bytes();
  frame.metalayers.emplace_back(spec.dtype ? "b2nd" : "caterva", array_layer(spec));
  std::vector<std::int64_t> entries;
  for (const Bytes& plain : array_chunks(spec, items)) {
    const ArrayChunk how = kind(static_cast<std::int64_t>(entries.size()));
    if (how == ArrayChunk::zeros) {
      entries.push_back(static_cast<std::int64_t>(std::uint64_t{0x81} << 56));
      continue;
    }
    entries.push_back(static_cast<std::int64_t>(frame.chunk_section.size()));
    const Bytes chunk = how == ArrayChunk::plain
                            ? plain_chunk(plain)
                            : raw_block_chunk(plain, static_cast<std::uint32_t>(spec.block_bytes()));
    frame.chunk_section.insert(frame.chunk_section.end(), chunk.begin(), chunk.end());
  }
  if (!entries.empty()) frame.index = plain_index(entries);
  return frame;
}

FrameBuilder array_frame(const ArraySpec& spec, codec::ByteView items) {
  return array_frame(spec, items, [](std::int64_t) { return ArrayChunk::blocks; });
}

Bytes varied_items(std::size_t size, std::uint64_t seed) {
  Bytes bytes(size);
  std::uint64_t state = seed * 2654435761U + 88172645463325252U;
  for (std::uint8_t& byte : bytes) {
    state = state * 6364136223846793005U + 1442695040888963407U;
    byte = static_cast<std::uint8_t>(state >> 56);
  }
  return bytes;
}

}  // namespace cframefs::test
