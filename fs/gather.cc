// Reading n-d arrays: the part of ReadRoute that puts C-order bytes together from boxes of decoded blocks.
//
// A request touches boxes of many blocks (frame/array_geometry.h cuts it up). The cells of a few MiB of blocks at a
// time are claimed, decoded and published as on the route of plain frames; then each box is copied out in runs as wide
// as the innermost dimensions allow. Cells stay in the cache until all their items have been served: the next rows of
// the array come from the same blocks.
//
// Where a chunk's own blocks are not those of the array (plain copies, repeated values, the first caterva generation)
// the runs of a box are read through a window instead.
#include <algorithm>
#include <cstring>
#include <utility>

#include "fs/read_route.h"

namespace cframefs::fs {
namespace {

using frame::ArrayGeometry;

// What is claimed at once: enough to pay for itself, little enough for another thread to do the rest meanwhile.
constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;
constexpr std::size_t kBatchTiles = 256;
constexpr std::size_t kWindowBytes = std::size_t{256} << 10;
// A box that fills its span less than this is read run by run.
constexpr std::uint64_t kSparse = 4;

/// Whether the blocks that the chunk is decoded in are the blocks of the array.
bool has_array_blocks(const codec::ChunkDecoder& decoder, const ArrayGeometry& array) {
  return !decoder.header().memcpyed && decoder.block_count() == array.chunk_bytes() / array.block_bytes() &&
         decoder.block_range(0).size() == array.block_bytes();
}

codec::Error wrong_length(const frame::ChunkReader& reader) {
  codec::Error error = codec::corrupt("a chunk of " + std::to_string(reader.decoder().nbytes()) +
                                      " bytes, which is no tile of the array")
                           .value();
  error.chunk = reader.chunk().value;
  return error;
}

}  // namespace

struct ReadRoute::Batch {
  struct Cell {
    std::uint32_t number = 0;
    BlockCache::Lookup lookup;
  };
  struct Piece {
    ArrayGeometry::Tile tile;
    std::size_t cell = 0;  // of `cells`
  };
  std::vector<Cell> cells;
  std::vector<Piece> pieces;
  std::uint64_t bytes = 0;

  bool is_full() const { return bytes >= kBatchBytes || pieces.size() >= kBatchTiles; }
  void clear() {
    pieces.clear();
    cells.clear();
    bytes = 0;
  }
};

/// One request: of what, and where to.
struct ReadRoute::Gathering {
  const Generation& generation;
  const ArrayGeometry& array;
  codec::ByteSpan out;
};

codec::Result<void> ReadRoute::gather(const Generation& generation, const ArrayGeometry& array, std::uint64_t at,
                                      std::uint64_t length, Reply& reply) {
  Buffer buffer = pool_.get(length);
  const Gathering gathering{generation, array, buffer.bytes()};
  auto done = array.for_each_part(at - generation.view().head().size(), length,
                                  [&](const ArrayGeometry::Part& part) { return gather_part(gathering, part); });
  if (done) reply.add(std::move(buffer), length);
  return done;
}

codec::Result<void> ReadRoute::gather_part(const Gathering& gathering, const ArrayGeometry::Part& part) {
  const auto& [generation, array, out] = gathering;
  auto reader = generation.reader(part.chunk);
  if (!reader) return report(generation, reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  if (decoder.nbytes() != array.chunk_bytes()) return report(generation, wrong_length(**reader));
  if (decoder.is_zeros()) {
    frame::clear_box(part.to, out.data() + part.out);
    return {};
  }
  if (has_array_blocks(decoder, array)) return gather_tiles(gathering, **reader, part);
  return gather_runs(gathering, **reader, part);
}

codec::Result<void> ReadRoute::gather_tiles(const Gathering& gathering, const frame::ChunkReader& reader,
                                            const ArrayGeometry::Part& part) {
  const ArrayGeometry& array = gathering.array;
  const CellLayout layout(reader.decoder(), array.row_blocks());
  Batch batch;
  auto done = array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> codec::Result<void> {
    const std::uint32_t cell = layout.cell_of(tile.block);
    if (batch.is_full()) {
      if (auto taken = take_batch(gathering, reader, layout, part, batch); !taken) return taken;
    }
    if (batch.cells.empty() || batch.cells.back().number != cell) {
      batch.bytes += layout.range(cell).size();
      batch.cells.push_back({cell, {}});
    }
    batch.pieces.push_back({tile, batch.cells.size() - 1});
    return {};
  });
  return done ? take_batch(gathering, reader, layout, part, batch) : done;
}

codec::Result<void> ReadRoute::take_batch(const Gathering& gathering, const frame::ChunkReader& reader,
                                          const CellLayout& layout, const ArrayGeometry::Part& part, Batch& batch) {
  const auto& [generation, array, out] = gathering;
  std::uint64_t misses = 0;
  for (Batch::Cell& cell : batch.cells) {
    const CellKey key{generation.id(), part.chunk.value, cell.number};
    cell.lookup = cache_.find(key, layout.range(cell.number).size(), BlockCache::Keep::until_served);
    misses += cell.lookup.found == BlockCache::Found::load ? 1 : 0;
  }
  statistics_.cache_misses.fetch_add(misses, std::memory_order_relaxed);
  statistics_.cache_hits.fetch_add(batch.cells.size() - misses, std::memory_order_relaxed);
  if (misses != 0) {
    if (auto loaded = load_batch(generation, reader, layout, batch); !loaded) return loaded;
  }
  for (Batch::Cell& cell : batch.cells) {
    if (cell.lookup.found != BlockCache::Found::busy) continue;
    if (auto ready = cache_.wait(cell.lookup.pin); !ready) return report(generation, ready.error());
  }
  for (const Batch::Piece& piece : batch.pieces) {
    const Batch::Cell& cell = batch.cells[piece.cell];
    const BlockCache::Pin& pin = cell.lookup.pin;
    const codec::ByteRange range = layout.range(cell.number);
    frame::copy_box(piece.tile.box, pin.bytes().data() + (piece.tile.inner - range.begin), out.data() + piece.tile.out);
    std::uint64_t served = piece.tile.box.volume();
    // Padding is never asked for: it counts as served with the first item of the cell.
    if (piece.tile.inner == range.begin) {
      const std::uint32_t first = layout.first_block(cell.number);
      served += range.size() - array.item_bytes(part.origin, first, layout.block_count(cell.number));
    }
    pin.note_served(served);
  }
  batch.clear();
  return {};
}

/// Decodes the cells that this thread has claimed, neighbours together.
codec::Result<void> ReadRoute::load_batch(const Generation& generation, const frame::ChunkReader& reader,
                                          const CellLayout& layout, Batch& batch) {
  codec::Result<void> result;
  for (std::size_t i = 0; i < batch.cells.size();) {
    std::vector<BlockCache::Lookup> neighbours;
    const std::size_t begin = i;
    for (; i < batch.cells.size() && batch.cells[i].number == batch.cells[begin].number + (i - begin); ++i) {
      // Cells of different rows are neighbours, too, if no row ends inside the array.
      neighbours.push_back(std::move(batch.cells[i].lookup));
    }
    auto loaded = load_runs(generation, reader, layout, batch.cells[begin].number, neighbours);
    for (std::size_t k = 0; k < neighbours.size(); ++k)
      batch.cells[begin + k].lookup = std::move(neighbours[k]);
    if (!loaded && result) result = loaded;
  }
  return result;
}

codec::Result<void> ReadRoute::gather_runs(const Gathering& gathering, const frame::ChunkReader& reader,
                                           const ArrayGeometry::Part& part) {
  const Generation& generation = gathering.generation;
  Buffer window = pool_.get(kWindowBytes);
  std::uint64_t have = 0;
  std::uint64_t have_end = 0;
  return gathering.array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) {
    const std::uint64_t end = tile.inner + tile.box.from_span();
    const bool sparse = tile.box.volume() < tile.box.from_span() / kSparse;
    codec::Result<void> result;
    frame::for_each_run(tile.box, [&](std::uint64_t from, std::uint64_t to) {
      for (std::uint64_t done = 0; done < tile.box.run;) {
        const std::uint64_t inner = tile.inner + from + done;
        if (inner < have || inner >= have_end) {
          const std::uint64_t size = std::min<std::uint64_t>(kWindowBytes, sparse ? tile.box.run - done : end - inner);
          have = inner;
          have_end = inner + size;
          result = fetch_window(generation, reader, static_cast<std::uint32_t>(inner), window.bytes().first(size));
          if (!result) return false;
        }
        const std::uint64_t step = std::min(tile.box.run - done, have_end - inner);
        std::memcpy(gathering.out.data() + tile.out + to + done, window.bytes().data() + (inner - have), step);
        done += step;
      }
      return true;
    });
    return result;
  });
}

codec::Result<void> ReadRoute::fetch_window(const Generation& generation, const frame::ChunkReader& reader,
                                            std::uint32_t inner, codec::ByteSpan window) {
  if (reader.decoder().header().memcpyed) {
    if (auto done = reader.read_plain(inner, window); !done) return report(generation, done.error());
    statistics_.bytes_fetched.fetch_add(window.size(), std::memory_order_relaxed);
    return {};
  }
  const frame::Piece piece{reader.chunk(), inner, static_cast<std::uint32_t>(window.size()), 0};
  Reply part;
  if (auto done = read_cells(generation, reader, piece, Manner::returning, part); !done) return done;
  part.copy_to(window.data());
  return {};
}

void ReadRoute::gather_ahead(const Generation& generation, const ArrayGeometry& array, std::uint64_t at,
                             std::uint64_t length, const std::function<bool()>& wanted) {
  const std::uint64_t head = generation.view().head().size();
  const std::uint64_t begin = std::max(at, head);
  if (at + length <= begin) return;
  const auto stop = [] { return codec::Result<void>(codec::invalid("nobody waits for it any more")); };
  // Whatever fails will fail again for the reader, who reports it.
  static_cast<void>(array.for_each_part(begin - head, at + length - begin, [&](const ArrayGeometry::Part& part) {
    if (!wanted()) return stop();
    auto reader = generation.reader(part.chunk);
    if (!reader || (*reader)->decoder().nbytes() != array.chunk_bytes()) return codec::Result<void>();
    const codec::ChunkDecoder& decoder = (*reader)->decoder();
    if (decoder.is_zeros() || !has_array_blocks(decoder, array)) return codec::Result<void>();
    const CellLayout layout(decoder, array.row_blocks());
    Batch batch;
    const auto load = [&] {
      static_cast<void>(load_batch(generation, **reader, layout, batch));
      batch.clear();
    };
    std::uint32_t last = 0;
    bool first = true;
    auto done = array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) {
      const std::uint32_t cell = layout.cell_of(tile.block);
      if (!first && cell == last) return codec::Result<void>();
      first = false;
      last = cell;
      const CellKey key{generation.id(), part.chunk.value, cell};
      const std::uint64_t size = layout.range(cell).size();
      BlockCache::Pin pin = cache_.find_to_load(key, size, BlockCache::Keep::until_served);
      if (!pin) return codec::Result<void>();
      statistics_.cells_ahead.fetch_add(1, std::memory_order_relaxed);
      batch.bytes += size;
      batch.cells.push_back({cell, {std::move(pin), BlockCache::Found::load}});
      if (batch.bytes < kBatchBytes) return codec::Result<void>();
      load();
      return wanted() ? codec::Result<void>() : stop();
    });
    if (!batch.cells.empty()) load();
    return done;
  }));
}

}  // namespace cframefs::fs
