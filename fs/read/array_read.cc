// Reading n-d arrays: the part of ReadPath that assembles C-order bytes from boxes of decoded blocks.
//
// A request touches boxes of many blocks (frame/array/array_geometry.h splits it). The cells of a few MiB of blocks at
// a time are claimed, decoded and published as for plain frames; then each box is copied out in runs as wide as the
// innermost dimensions allow. Cells stay in the cache until all their items have been served: the next rows of the
// array come from the same blocks.
//
// If a slab (frame/array/array_geometry.h) exceeds the cache, its blocks would be evicted before a sequential reader's
// next row. So the cache keeps only a band of rows of each block, as many as fit: a cell is then one band of one block,
// and a block is decoded once for each band instead of once for each row. Random readers get whole blocks, because they
// may want any row next (one column after the other, say). Their first reads of a block bypass the cache
// (fs/read/block_cache.h) if they want little of it: a row of a large array is 1/100 of each of its blocks.
//
// If the blocks of a chunk are not those of the array (uncompressed chunks, repeated values, the first caterva
// snapshot), the runs of a box are read through a window instead.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include <fmt/core.h>

#include "fs/read/read_path.h"

namespace cframefs::fs {
namespace {

using frame::ArrayGeometry;

// Blocks claimed at once: enough to pay for itself, few enough for another thread to decode the rest concurrently.
constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;
constexpr std::size_t kBatchTiles = 256;
constexpr std::size_t kWindowBytes = std::size_t{256} << 10;
// Random readers bypass the cache (fs/read/block_cache.h) for reads below 1/64 of a block. Most readers that continue
// sequentially after a jump want more of each block at once, and would otherwise have it decoded twice.
constexpr std::uint64_t kBypassFraction = 64;
// Reads in the first 2 MiB of an array count as sequential.
constexpr std::uint64_t kBeginning = std::uint64_t{2} << 20;
// A box that fills less than 1/4 of its span is read run by run.
constexpr std::uint64_t kSparse = 4;

/// Returns whether the blocks of the chunk are the blocks of the array.
bool has_array_blocks(const frame::ChunkReader& reader, const ArrayGeometry& array) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  return reader.storage() == frame::Storage::blocks &&
         decoder.block_count() == array.chunk_bytes() / array.block_bytes() &&
         decoder.block_range(0).size() == array.block_bytes();
}

codec::Error wrong_length(const frame::ChunkReader& reader, const ArrayGeometry& array) {
  codec::Error error = codec::corrupt(fmt::format("the chunk has {} bytes; chunks of the array have {}",
                                                  reader.decoder().nbytes(), array.chunk_bytes()))
                           .value();
  error.chunk = reader.chunk().value;
  return error;
}

/// Returns the chunks that more than one part of the request lies in, in order.
std::vector<std::int64_t> chunks_of_several_parts(const ArrayGeometry& array, std::uint64_t at, std::uint64_t length) {
  std::vector<std::int64_t> chunks;
  static_cast<void>(array.for_each_part(at, length, [&chunks](const ArrayGeometry::Part& part) {
    chunks.push_back(part.chunk.value);
    return codec::Result<void>();
  }));
  std::sort(chunks.begin(), chunks.end());
  std::vector<std::int64_t> several;
  for (std::size_t i = 1; i < chunks.size(); ++i)
    if (chunks[i] == chunks[i - 1]) several.push_back(chunks[i]);
  return several;
}

codec::Result<void> cancelled() {
  return codec::invalid("cancelled");
}

/// Returns the inner bytes of the first block that a part lies in.
codec::ByteRange first_bytes(const ArrayGeometry& array, const ArrayGeometry::Part& part) {
  codec::ByteRange first;
  static_cast<void>(array.for_each_tile(part, [&first](const ArrayGeometry::Tile& tile) {
    first = {tile.inner, std::uint64_t{tile.inner} + 1};
    return cancelled();
  }));
  return first;
}

}  // namespace

/// Maps the blocks of a chunk of an array to cells: neighbouring blocks, or one band of one block.
class ReadPath::TileCells {
 public:
  TileCells(const frame::ChunkReader& reader, const ArrayGeometry& array)
      : reader_(reader), array_(array), layout_(reader.decoder(), array.row_blocks()) {}
  /// Cells are band `band` of each block; a band has `rows` rows.
  TileCells(const frame::ChunkReader& reader, const ArrayGeometry& array, std::uint64_t rows, std::uint32_t band)
      : reader_(reader),
        array_(array),
        layout_(reader.decoder(), array.row_blocks()),
        bands_(static_cast<std::uint32_t>((array.block_rows() + rows - 1) / rows)),
        band_(band),
        rows_{band * rows, std::min((band + 1) * rows, array.block_rows())} {}

  const frame::ChunkReader& reader() const { return reader_; }
  const CacheBlockLayout& layout() const { return layout_; }
  bool are_bands() const { return bands_ != 0; }

  std::uint32_t cell_of(std::uint32_t block) const {
    return are_bands() ? kOfBands | (block * bands_ + band_) : layout_.cell_of(block);
  }
  std::uint32_t block_of(std::uint32_t cell) const {
    return are_bands() ? (cell & ~kOfBands) / bands_ : layout_.first_block(cell);
  }
  /// Returns the range of the cell in the chunk's uncompressed bytes.
  codec::ByteRange range(std::uint32_t cell) const {
    if (!are_bands()) return layout_.range(cell);
    const std::uint64_t block = std::uint64_t{block_of(cell)} * array_.block_bytes();
    return {block + rows_.begin * array_.block_row_bytes(), block + rows_.end * array_.block_row_bytes()};
  }
  /// Returns whether a reader that wants only `tile` of the cell may bypass the cache.
  bool can_bypass(std::uint32_t cell, const ArrayGeometry::Tile& tile) const {
    return !are_bands() && layout_.block_count(cell) == 1 &&
           tile.box.from_span() < range(cell).size() / kBypassFraction &&
           reader_.decoder().decodes_partial(layout_.first_block(cell));
  }
  /// Returns the bytes of the cell that are padding and no items of the array. `origin`: of the chunk.
  std::uint64_t padding(const ArrayGeometry::Coordinates& origin, std::uint32_t cell) const {
    const std::uint32_t blocks = are_bands() ? 1 : layout_.block_count(cell);
    return range(cell).size() - array_.item_bytes(origin, block_of(cell), blocks, rows_);
  }

 private:
  // Distinguishes the numbers of bands from those of blocks. A chunk has fewer than 2^31 bytes, so both fit.
  static constexpr std::uint32_t kOfBands = std::uint32_t{1} << 31;

  const frame::ChunkReader& reader_;
  const ArrayGeometry& array_;
  const CacheBlockLayout layout_;
  std::uint32_t bands_ = 0;  // 0: cells are whole blocks
  std::uint32_t band_ = 0;
  frame::BlockRows rows_;
};

struct ReadPath::Batch {
  struct Cell {
    std::uint32_t number = 0;
    BlockCache::Lookup lookup;
    std::size_t first_piece = 0;  // index in `pieces`
    std::size_t count = 0;        // of pieces
  };
  struct Piece {
    ArrayGeometry::Tile tile;
    std::size_t cell = 0;  // index in `cells`
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

/// One request: its source and its destination.
struct ReadPath::Gathering {
  const FrameSnapshot& snapshot;
  const ArrayGeometry& array;
  const AccessPattern pattern;
  codec::ByteSpan out;
  ReadPermit& permit;
  /// Chunks that more than one part of the request lies in, in order: each of these parts may want the same block.
  std::vector<std::int64_t> wanted_again;

  bool may_bypass(const ArrayGeometry::Part& part) const {
    return pattern == AccessPattern::random &&
           !std::binary_search(wanted_again.begin(), wanted_again.end(), part.chunk.value);
  }
};

codec::Result<void> ReadPath::gather(const FrameSnapshot& snapshot, const ArrayGeometry& array, std::uint64_t at,
                                     std::uint64_t length, AccessPattern pattern, Reply& reply) {
  const std::uint64_t begin = at - snapshot.view().head().size();
  // A reader of the beginning probably continues from there. The kernel requests more than one part of it at once, and
  // the one that is served first looks like a jump.
  if (begin < kBeginning && pattern == AccessPattern::random) pattern = AccessPattern::any;
  Buffer buffer = pool_.get(length);
  Gathering gathering{snapshot, array, pattern, buffer.bytes(), reply.permit(), {}};
  if (pattern == AccessPattern::random) gathering.wanted_again = chunks_of_several_parts(array, begin, length);
  auto done =
      array.for_each_part(begin, length, [&](const ArrayGeometry::Part& part) { return gather_part(gathering, part); });
  if (done) reply.add(std::move(buffer), length);
  return done;
}

codec::Result<void> ReadPath::gather_part(const Gathering& gathering, const ArrayGeometry::Part& part) {
  const auto& [snapshot, array, pattern, out, permit, wanted_again] = gathering;
  auto reader = snapshot.reader(part.chunk, first_bytes(array, part));
  if (!reader) return report(snapshot, reader.error());
  if ((*reader)->decoder().nbytes() != array.chunk_bytes()) return report(snapshot, wrong_length(**reader, array));
  if ((*reader)->storage() == frame::Storage::zeros) {
    frame::clear_box(part.to, out.data() + part.out);
    return {};
  }
  if (!has_array_blocks(**reader, array)) return gather_runs(gathering, **reader, part);
  return for_each_cells(**reader, array, part, pattern, [&](const TileCells& cells, const ArrayGeometry::Part& piece) {
    return gather_tiles(gathering, cells, piece);
  });
}

/// Returns the rows of a block that are cached together; 0 if blocks are cached whole, or if not even a row of each
/// fits.
std::uint64_t ReadPath::band_rows(const frame::ChunkReader& reader, const ArrayGeometry& array) const {
  const std::uint64_t slab = array.slab_block_bytes();
  // Block 0 of a chunk with a reference is cached whole, because the other blocks need it.
  if (slab <= cache_.bound() / 4 * 3 || reader.decoder().needs_reference()) return 0;
  // The share of each block: two bands exist at once, one that is read and one that is decoded ahead.
  const std::uint64_t share = cache_.bound() / 8 * 3 / (slab / array.block_bytes());
  const std::uint64_t row = array.block_row_bytes();
  std::uint64_t rows = std::min(share / row, array.block_rows());
  while (rows > 0 && BufferPool::capacity_for(rows * row) > share)
    --rows;
  return rows;
}

codec::Result<void> ReadPath::for_each_cells(
    const frame::ChunkReader& reader, const ArrayGeometry& array, const ArrayGeometry::Part& part,
    AccessPattern pattern,
    const std::function<codec::Result<void>(const TileCells&, const ArrayGeometry::Part&)>& visit) {
  const std::uint64_t rows = pattern == AccessPattern::sequential ? band_rows(reader, array) : 0;
  if (rows == 0) return visit(TileCells(reader, array), part);
  return array.for_each_band(part, rows, [&](const ArrayGeometry::Part& piece, std::uint32_t band) {
    return visit(TileCells(reader, array, rows, band), piece);
  });
}

codec::Result<void> ReadPath::gather_tiles(const Gathering& gathering, const TileCells& cells,
                                           const ArrayGeometry::Part& part) {
  Batch batch;
  auto done = gathering.array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> codec::Result<void> {
    const std::uint32_t cell = cells.cell_of(tile.block);
    if (batch.is_full()) {
      if (auto taken = take_batch(gathering, cells, part, batch); !taken) return taken;
    }
    if (batch.cells.empty() || batch.cells.back().number != cell) {
      batch.bytes += cells.range(cell).size();
      batch.cells.push_back({cell, {}, batch.pieces.size(), 0});
    }
    ++batch.cells.back().count;
    batch.pieces.push_back({tile, batch.cells.size() - 1});
    return {};
  });
  return done ? take_batch(gathering, cells, part, batch) : done;
}

codec::Result<void> ReadPath::take_batch(const Gathering& gathering, const TileCells& cells,
                                         const ArrayGeometry::Part& part, Batch& batch) {
  const FrameSnapshot& snapshot = gathering.snapshot;
  std::uint64_t misses = 0;
  std::uint64_t bypasses = 0;
  const bool may_bypass = gathering.may_bypass(part);
  const auto key_of = [&](const Batch::Cell& cell) { return CacheKey{snapshot.id(), part.chunk.value, cell.number}; };
  std::uint64_t largest_missing = 0;
  for (Batch::Cell& cell : batch.cells) {
    cell.lookup = cache_.find_known(key_of(cell));
    if (!cell.lookup.pin) largest_missing = std::max<std::uint64_t>(largest_missing, cells.range(cell.number).size());
  }
  if (largest_missing != 0) {
    for (const Batch::Cell& cell : batch.cells) {
      if (cell.lookup.pin) continue;
      const std::uint32_t blocks = cells.are_bands() ? 1 : cells.layout().block_count(cell.number);
      auto near = cells.reader().fetch(cells.block_of(cell.number), blocks);
      if (!near) return report(snapshot, near.error());
    }
    if (auto entered = gathering.permit.enter(turns_for(largest_missing)); !entered) return entered;
  }
  for (Batch::Cell& cell : batch.cells) {
    if (cell.lookup.pin) continue;
    const CacheKey key = key_of(cell);
    const std::size_t size = cells.range(cell.number).size();
    const auto keep = BlockCache::Retention::until_consumed;
    const bool bypass =
        may_bypass && cell.count == 1 && cells.can_bypass(cell.number, batch.pieces[cell.first_piece].tile);
    cell.lookup = bypass ? cache_.find_or_bypass(key, size, keep) : cache_.find(key, size, keep);
    misses += cell.lookup.found == BlockCache::Found::load ? 1 : 0;
    bypasses += cell.lookup.found == BlockCache::Found::bypass ? 1 : 0;
  }
  statistics_.cache_misses.fetch_add(misses + bypasses, std::memory_order_relaxed);
  statistics_.cache_hits.fetch_add(batch.cells.size() - misses - bypasses, std::memory_order_relaxed);
  // Finish every claimed cell, also after an error: other threads may be waiting for it.
  auto result = misses != 0 ? load_batch(snapshot, cells, batch) : codec::Result<void>();
  if (bypasses != 0) {
    if (auto taken = take_bypassed(gathering, cells, batch); !taken && result) result = taken;
  }
  if (!result) return result;
  for (Batch::Cell& cell : batch.cells) {
    if (cell.lookup.found != BlockCache::Found::busy) continue;
    if (auto ready = cache_.wait(cell.lookup.pin); !ready) return report(snapshot, ready.error());
  }
  for (const Batch::Piece& piece : batch.pieces) {
    const Batch::Cell& cell = batch.cells[piece.cell];
    if (cell.lookup.found == BlockCache::Found::bypass) continue;
    const BlockCache::Pin& pin = cell.lookup.pin;
    const std::uint64_t begin = cells.range(cell.number).begin;
    frame::copy_box(piece.tile.box, pin.bytes().data() + (piece.tile.inner - begin),
                    gathering.out.data() + piece.tile.out);
    std::uint64_t served = piece.tile.box.volume();
    // Padding is never requested: it counts as served with the first item of the cell.
    if (piece.tile.inner == begin) served += cells.padding(part.origin, cell.number);
    pin.note_served(served);
  }
  batch.clear();
  return {};
}

/// Copies the boxes of bypassed cells.
codec::Result<void> ReadPath::take_bypassed(const Gathering& gathering, const TileCells& cells, Batch& batch) {
  codec::Result<void> result;
  for (Batch::Cell& cell : batch.cells) {
    if (cell.lookup.found != BlockCache::Found::bypass) continue;
    const ArrayGeometry::Tile& tile = batch.pieces[cell.first_piece].tile;
    const auto begin = static_cast<std::uint32_t>(tile.inner - cells.range(cell.number).begin);
    Buffer window = pool_.get(tile.box.from_span());
    auto done =
        bypass(gathering.snapshot, cells.reader(), cells.layout(), cell.number, begin, window.bytes(), cell.lookup.pin);
    if (done) frame::copy_box(tile.box, window.bytes().data(), gathering.out.data() + tile.out);
    if (!done && result) result = done;
  }
  return result;
}

/// Decodes the cells that this thread has claimed, neighbours together.
codec::Result<void> ReadPath::load_batch(const FrameSnapshot& snapshot, const TileCells& cells, Batch& batch) {
  codec::Result<void> result;
  if (cells.are_bands()) {
    for (Batch::Cell& cell : batch.cells) {
      if (cell.lookup.found != BlockCache::Found::load) continue;
      if (auto loaded = load_band(snapshot, cells, cell.number, cell.lookup.pin); !loaded && result) result = loaded;
    }
    return result;
  }
  for (std::size_t i = 0; i < batch.cells.size();) {
    std::vector<BlockCache::Lookup> neighbours;
    const std::size_t begin = i;
    for (; i < batch.cells.size() && batch.cells[i].number == batch.cells[begin].number + (i - begin); ++i) {
      // Cells of different rows are neighbours, too, if no row ends inside the array.
      neighbours.push_back(std::move(batch.cells[i].lookup));
    }
    auto loaded = load_runs(snapshot, cells.reader(), cells.layout(), batch.cells[begin].number, neighbours);
    for (std::size_t k = 0; k < neighbours.size(); ++k)
      batch.cells[begin + k].lookup = std::move(neighbours[k]);
    if (!loaded && result) result = loaded;
  }
  return result;
}

/// Decodes a block and caches one band of it.
codec::Result<void> ReadPath::load_band(const FrameSnapshot& snapshot, const TileCells& cells, std::uint32_t cell,
                                        BlockCache::Pin& pin) {
  const frame::ChunkReader& reader = cells.reader();
  const std::uint32_t block = cells.block_of(cell);
  const codec::ByteRange whole = reader.decoder().block_range(block);
  const codec::ByteRange band = cells.range(cell);
  Buffer plain = pool_.get(whole.size());
  const ByteBudget::Reservation share(budget_, reader.scratch_bytes(block, 1) + whole.size() + band.size());
  const codec::ContextPool::PooledPtr context = contexts_.acquire();
  const std::array<codec::ByteSpan, 1> outs = {plain.bytes()};
  const Stopwatch watch(statistics_.decode_time);
  if (auto decoded = reader.decode(*context, block, outs, {}); !decoded) {
    const Run run{cell, {&pin}};
    fail(snapshot, run, decoded.error());
    return report(snapshot, decoded.error());
  }
  std::memcpy(pin.bytes().data(), plain.bytes().data() + (band.begin - whole.begin), band.size());
  cache_.publish(pin);
  statistics_.blocks_decoded.fetch_add(1, std::memory_order_relaxed);
  statistics_.bytes_decoded.fetch_add(whole.size(), std::memory_order_relaxed);
  statistics_.bytes_fetched.fetch_add(reader.decoder().stored_range(block).size(), std::memory_order_relaxed);
  return {};
}

codec::Result<void> ReadPath::gather_runs(const Gathering& gathering, const frame::ChunkReader& reader,
                                          const ArrayGeometry::Part& part) {
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
          result = fetch_window(gathering, reader, static_cast<std::uint32_t>(inner), window.bytes().first(size));
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

codec::Result<void> ReadPath::fetch_window(const Gathering& gathering, const frame::ChunkReader& reader,
                                           std::uint32_t inner, codec::ByteSpan window) {
  const FrameSnapshot& snapshot = gathering.snapshot;
  if (reader.storage() == frame::Storage::raw) {
    if (auto done = reader.read_plain(inner, window); !done) return report(snapshot, done.error());
    statistics_.bytes_fetched.fetch_add(window.size(), std::memory_order_relaxed);
    return {};
  }
  const frame::Piece piece{reader.chunk(), inner, static_cast<std::uint32_t>(window.size()), 0};
  Reply part(gathering.permit);
  if (auto done = read_cells(snapshot, reader, piece, AccessPattern::strided_reuse, part); !done) return done;
  part.copy_to(window.data());
  return {};
}

/// Waits for the server, if there is one, that the cells come from, before they are claimed and take a turn to decode.
bool ReadPath::fetch_ahead(const FrameSnapshot& snapshot, const ArrayGeometry& array, const TileCells& cells,
                           const ArrayGeometry::Part& part, const std::function<bool()>& wanted) {
  if (!cells.reader().is_remote()) return true;
  std::optional<std::uint32_t> last;
  const auto done = array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> codec::Result<void> {
    const std::uint32_t cell = cells.cell_of(tile.block);
    if (last == cell) return {};
    last = cell;
    if (!wanted()) return cancelled();
    if (cache_.find_known({snapshot.id(), part.chunk.value, cell}).pin) return {};
    return cells.reader().fetch(cells.block_of(cell), cells.are_bands() ? 1 : cells.layout().block_count(cell));
  });
  return done.has_value();
}

codec::Result<void> ReadPath::load_ahead(const FrameSnapshot& snapshot, const ArrayGeometry& array,
                                         const TileCells& cells, const ArrayGeometry::Part& part,
                                         const std::function<bool()>& wanted) {
  if (!fetch_ahead(snapshot, array, cells, part, wanted)) return cancelled();
  Batch batch;
  const auto load = [&] {
    static_cast<void>(load_batch(snapshot, cells, batch));
    batch.clear();
  };
  std::optional<std::uint32_t> last;
  auto done = array.for_each_tile(part, [&](const ArrayGeometry::Tile& tile) -> codec::Result<void> {
    const std::uint32_t cell = cells.cell_of(tile.block);
    if (last == cell) return {};
    last = cell;
    const CacheKey key{snapshot.id(), part.chunk.value, cell};
    const std::uint64_t size = cells.range(cell).size();
    BlockCache::Pin pin = cache_.find_to_load(key, size, BlockCache::Retention::until_consumed);
    if (!pin) return {};
    statistics_.prefetched_blocks.fetch_add(1, std::memory_order_relaxed);
    batch.bytes += size;
    batch.cells.push_back({cell, {std::move(pin), BlockCache::Found::load}, 0, 0});
    if (batch.bytes < kBatchBytes) return {};
    load();
    return wanted() ? codec::Result<void>() : cancelled();
  });
  if (!batch.cells.empty()) load();
  return done;
}

void ReadPath::gather_ahead(const FrameSnapshot& snapshot, const ArrayGeometry& array, std::uint64_t at,
                            std::uint64_t length, const std::function<bool()>& wanted) {
  const std::uint64_t head = snapshot.view().head().size();
  const std::uint64_t begin = std::max(at, head);
  if (at + length <= begin) return;
  // Ignore errors: the reader will get them and report them.
  static_cast<void>(array.for_each_part(begin - head, at + length - begin, [&](const ArrayGeometry::Part& part) {
    if (!wanted()) return cancelled();
    auto reader = snapshot.reader(part.chunk, first_bytes(array, part));
    if (!reader || (*reader)->decoder().nbytes() != array.chunk_bytes()) return codec::Result<void>();
    if (!has_array_blocks(**reader, array)) return codec::Result<void>();
    const auto pattern = AccessPattern::sequential;
    return for_each_cells(**reader, array, part, pattern,
                          [&](const TileCells& cells, const ArrayGeometry::Part& piece) {
                            return load_ahead(snapshot, array, cells, piece, wanted);
                          });
  }));
}

}  // namespace cframefs::fs
