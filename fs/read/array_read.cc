// Reading n-d arrays: the part of ReadPath that puts C-order bytes together from boxes of decoded blocks.
//
// A request touches boxes of many blocks (frame/array/array_geometry.h cuts it up). The cells of a few MiB of blocks at
// a time are claimed, decoded and published as on the route of plain frames; then each box is copied out in runs as
// wide as the innermost dimensions allow. Cells stay in the cache until all their items have been served: the next rows
// of the array come from the same blocks.
//
// Where all the blocks of a slab (frame/array/array_geometry.h) are more than the cache holds, each would be gone
// before a sequential reader comes to its next row. So of such blocks only a band of rows is kept for him, as many as
// fit: a cell is then one band of one block, and a block is decoded once for each band instead of once for each row.
// Those who jump about (a column after the other, say) find whole blocks: they may want any row next. Only the first
// times, and of blocks of which they want next to nothing, they glance (fs/read/block_cache.h): a row of a large array
// is a hundredth of each of its blocks.
//
// Where a chunk's own blocks are not those of the array (plain copies, repeated values, the first caterva snapshot)
// the runs of a box are read through a window instead.
#include <algorithm>
#include <array>
#include <cstring>
#include <optional>
#include <utility>

#include "fs/read/read_path.h"

namespace cframefs::fs {
namespace {

using frame::ArrayGeometry;

// What is claimed at once: enough to pay for itself, little enough for another thread to do the rest meanwhile.
constexpr std::uint64_t kBatchBytes = std::uint64_t{4} << 20;
constexpr std::size_t kBatchTiles = 256;
constexpr std::size_t kWindowBytes = std::size_t{256} << 10;
// One who jumps about glances at a block (fs/read/block_cache.h) of which he wants less than this. Most who read on
// from where they jumped to want more of each block at once; they would have it decoded twice.
constexpr std::uint64_t kBypassFraction = 64;
constexpr std::uint64_t kBeginning = std::uint64_t{2} << 20;
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

/// In order.
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

codec::Result<void> nobody_waits() {
  return codec::invalid("nobody waits for it any more");
}

}  // namespace

/// The cells of a chunk's tiles: neighbouring blocks, or one band of one block.
class ReadPath::TileCells {
 public:
  TileCells(const frame::ChunkReader& reader, const ArrayGeometry& array)
      : reader_(reader), array_(array), layout_(reader.decoder(), array.row_blocks()) {}
  /// Band `band` of the blocks, where these are cut every `rows` rows.
  TileCells(const frame::ChunkReader& reader, const ArrayGeometry& array, std::uint64_t rows, std::uint32_t band)
      : TileCells(reader, array) {
    bands_ = static_cast<std::uint32_t>((array.block_rows() + rows - 1) / rows);
    band_ = band;
    rows_ = {band * rows, std::min((band + 1) * rows, array.block_rows())};
  }

  const frame::ChunkReader& reader() const { return reader_; }
  const CacheBlockLayout& layout() const { return layout_; }
  bool are_bands() const { return bands_ != 0; }

  std::uint32_t cell_of(std::uint32_t block) const {
    return are_bands() ? kOfBands | (block * bands_ + band_) : layout_.cell_of(block);
  }
  std::uint32_t block_of(std::uint32_t cell) const {
    return are_bands() ? (cell & ~kOfBands) / bands_ : layout_.first_block(cell);
  }
  /// In the plain bytes of the chunk.
  codec::ByteRange range(std::uint32_t cell) const {
    if (!are_bands()) return layout_.range(cell);
    const std::uint64_t block = std::uint64_t{block_of(cell)} * array_.block_bytes();
    return {block + rows_.begin * array_.block_row_bytes(), block + rows_.end * array_.block_row_bytes()};
  }
  /// Whether one who wants `tile` alone of the cell may leave the cell out of the cache.
  bool can_glance(std::uint32_t cell, const ArrayGeometry::Tile& tile) const {
    return !are_bands() && layout_.block_count(cell) == 1 &&
           tile.box.from_span() < range(cell).size() / kBypassFraction &&
           reader_.decoder().decodes_partial(layout_.first_block(cell));
  }
  /// Bytes of the cell that are no items of the array. `origin`: of the chunk.
  std::uint64_t padding(const ArrayGeometry::Coordinates& origin, std::uint32_t cell) const {
    const std::uint32_t blocks = are_bands() ? 1 : layout_.block_count(cell);
    return range(cell).size() - array_.item_bytes(origin, block_of(cell), blocks, rows_);
  }

 private:
  // Tells the numbers of bands from those of blocks. A chunk has fewer than 2^31 bytes, so either has room.
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
    std::size_t first_piece = 0;  // of `pieces`
    std::size_t count = 0;        // of its pieces
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
struct ReadPath::Gathering {
  const FrameSnapshot& snapshot;
  const ArrayGeometry& array;
  const AccessPattern pattern;
  codec::ByteSpan out;
  ReadPermit& permit;
  /// Chunks that more than one part of the request lies in, in order: a block of theirs may be wanted for each of
  /// these.
  std::vector<std::int64_t> wanted_again;

  bool may_glance(const ArrayGeometry::Part& part) const {
    return pattern == AccessPattern::random &&
           !std::binary_search(wanted_again.begin(), wanted_again.end(), part.chunk.value);
  }
};

codec::Result<void> ReadPath::gather(const FrameSnapshot& snapshot, const ArrayGeometry& array, std::uint64_t at,
                                     std::uint64_t length, AccessPattern pattern, Reply& reply) {
  const std::uint64_t begin = at - snapshot.view().head().size();
  // Who comes to the beginning most likely goes on from there. The kernel asks for more than one piece of it at once,
  // and whichever is served first looks like a jump.
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
  auto reader = snapshot.reader(part.chunk);
  if (!reader) return report(snapshot, reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  if (decoder.nbytes() != array.chunk_bytes()) return report(snapshot, wrong_length(**reader));
  if (decoder.is_zeros()) {
    frame::clear_box(part.to, out.data() + part.out);
    return {};
  }
  if (!has_array_blocks(decoder, array)) return gather_runs(gathering, **reader, part);
  return for_each_cells(**reader, array, part, pattern, [&](const TileCells& cells, const ArrayGeometry::Part& piece) {
    return gather_tiles(gathering, cells, piece);
  });
}

/// Rows of a block that are kept together; 0 if blocks are kept whole, or not even a row of each can be kept.
std::uint64_t ReadPath::band_rows(const frame::ChunkReader& reader, const ArrayGeometry& array) const {
  const std::uint64_t slab = array.slab_block_bytes();
  // The first block of such a chunk is a cell of its own, for the others' sake.
  if (slab <= cache_.bound() / 4 * 3 || reader.decoder().needs_reference()) return 0;
  // What a block may take: two bands are there at once, one being read and one decoded ahead.
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
    const std::function<codec::Result<void>(const TileCells&, const ArrayGeometry::Part&)>& take) {
  const std::uint64_t rows = pattern == AccessPattern::sequential ? band_rows(reader, array) : 0;
  if (rows == 0) return take(TileCells(reader, array), part);
  return array.for_each_band(part, rows, [&](const ArrayGeometry::Part& piece, std::uint32_t band) {
    return take(TileCells(reader, array, rows, band), piece);
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
  const bool may_glance = gathering.may_glance(part);
  const auto key_of = [&](const Batch::Cell& cell) { return CacheKey{snapshot.id(), part.chunk.value, cell.number}; };
  std::uint64_t largest_missing = 0;
  for (Batch::Cell& cell : batch.cells) {
    cell.lookup = cache_.find_known(key_of(cell));
    if (!cell.lookup.pin) largest_missing = std::max<std::uint64_t>(largest_missing, cells.range(cell.number).size());
  }
  if (largest_missing != 0) {
    if (auto entered = gathering.permit.enter(turns_for(largest_missing)); !entered) return entered;
  }
  for (Batch::Cell& cell : batch.cells) {
    if (cell.lookup.pin) continue;
    const CacheKey key = key_of(cell);
    const std::size_t size = cells.range(cell.number).size();
    const auto keep = BlockCache::Retention::until_consumed;
    const bool bypass =
        may_glance && cell.count == 1 && cells.can_glance(cell.number, batch.pieces[cell.first_piece].tile);
    cell.lookup = bypass ? cache_.find_or_bypass(key, size, keep) : cache_.find(key, size, keep);
    misses += cell.lookup.found == BlockCache::Found::load ? 1 : 0;
    bypasses += cell.lookup.found == BlockCache::Found::bypass ? 1 : 0;
  }
  statistics_.cache_misses.fetch_add(misses + bypasses, std::memory_order_relaxed);
  statistics_.cache_hits.fetch_add(batch.cells.size() - misses - bypasses, std::memory_order_relaxed);
  // Whatever was claimed is seen through, also after an error: others may be waiting for it.
  auto result = misses != 0 ? load_batch(snapshot, cells, batch) : codec::Result<void>();
  if (bypasses != 0) {
    if (auto taken = take_glances(gathering, cells, batch); !taken && result) result = taken;
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
    // Padding is never asked for: it counts as served with the first item of the cell.
    if (piece.tile.inner == begin) served += cells.padding(part.origin, cell.number);
    pin.note_served(served);
  }
  batch.clear();
  return {};
}

/// Copies out what is only glanced at.
codec::Result<void> ReadPath::take_glances(const Gathering& gathering, const TileCells& cells, Batch& batch) {
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

/// Decodes a block for the sake of one band of it.
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
  if (reader.decoder().header().memcpyed) {
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

codec::Result<void> ReadPath::load_ahead(const FrameSnapshot& snapshot, const ArrayGeometry& array,
                                         const TileCells& cells, const ArrayGeometry::Part& part,
                                         const std::function<bool()>& wanted) {
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
    return wanted() ? codec::Result<void>() : nobody_waits();
  });
  if (!batch.cells.empty()) load();
  return done;
}

void ReadPath::gather_ahead(const FrameSnapshot& snapshot, const ArrayGeometry& array, std::uint64_t at,
                            std::uint64_t length, const std::function<bool()>& wanted) {
  const std::uint64_t head = snapshot.view().head().size();
  const std::uint64_t begin = std::max(at, head);
  if (at + length <= begin) return;
  // Whatever fails will fail again for the reader, who reports it.
  static_cast<void>(array.for_each_part(begin - head, at + length - begin, [&](const ArrayGeometry::Part& part) {
    if (!wanted()) return nobody_waits();
    auto reader = snapshot.reader(part.chunk);
    if (!reader || (*reader)->decoder().nbytes() != array.chunk_bytes()) return codec::Result<void>();
    const codec::ChunkDecoder& decoder = (*reader)->decoder();
    if (decoder.is_zeros() || !has_array_blocks(decoder, array)) return codec::Result<void>();
    const auto pattern = AccessPattern::sequential;
    return for_each_cells(**reader, array, part, pattern,
                          [&](const TileCells& cells, const ArrayGeometry::Part& piece) {
                            return load_ahead(snapshot, array, cells, piece, wanted);
                          });
  }));
}

}  // namespace cframefs::fs
