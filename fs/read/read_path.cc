#include "fs/read/read_path.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include <fmt/core.h>

namespace cframefs::fs {
namespace {

// Memory of decodes in progress. Together with the threads' own memory it stays below the 64 MiB that a mount may use
// beyond its cache. Beside a small cache it is less: blocks too large for the cache are then decoded one at a time.
constexpr std::uint64_t kDecodeBytes = std::uint64_t{40} << 20;
constexpr std::uint64_t kMinDecodeBytes = std::uint64_t{16} << 20;
// A reply of this many pieces is assembled in one buffer, which is cheaper than many short parts.
constexpr std::size_t kManyPieces = 64;
// Neighbouring cells are fetched and decoded together up to this many uncompressed bytes.
constexpr std::uint64_t kRunBytes = std::uint64_t{2} << 20;
// Likewise ahead of a reader, which waits for what is being decoded when it comes up.
constexpr std::uint64_t kClaimBytes = std::uint64_t{256} << 10;
// A bypass serves at most 1/4 of a cell, and only of cells of at most 4 MiB: the whole block is decompressed for
// it, so larger ones would cost more than the memory that they save.
constexpr std::uint64_t kMaxBypassShare = 4;
constexpr std::uint64_t kMaxBypassCell = std::uint64_t{4} << 20;
// A plain chunk has no block that is decoded as a whole. This much of it is as good.
constexpr std::uint64_t kPlainBlock = std::uint64_t{128} << 10;
// The kernel makes requests of more pages for a sequential reader, but for the first. A reader that jumps to and fro
// within its read-ahead looks sequential otherwise.
constexpr std::uint64_t kFewPages = std::uint64_t{16} << 10;
// Reads that fill larger cells take turns among themselves.
constexpr std::uint64_t kLargeCell = std::uint64_t{1} << 20;
// Reads that fill small cells at once, for each decoding thread: some of them wait for the disk.
constexpr unsigned kSmallReads = 8;
// Cells held by replies may take this many bytes, or half of the cache if that is more, before reads that fill large
// cells wait.
constexpr std::uint64_t kMinPinned = std::uint64_t{16} << 20;

codec::ByteRange bytes_of(const frame::Piece& piece) {
  return {piece.inner, std::uint64_t{piece.inner} + piece.length};
}

/// Returns the range around `inner` that a plain chunk gives the kernel at once.
codec::ByteRange plain_block(const frame::ChunkReader& reader, std::uint32_t inner) {
  const std::uint64_t begin = inner / kPlainBlock * kPlainBlock;
  return {begin, std::min<std::uint64_t>(begin + kPlainBlock, reader.decoder().nbytes())};
}

/// Records in the reply the block of a chunk that a small piece comes from.
void note_block(const codec::ByteRange& block, const frame::Piece& piece, ReadPath::AccessPattern pattern,
                Reply& reply) {
  const std::uint64_t end = std::uint64_t{piece.inner} + piece.length;
  if (pattern != ReadPath::AccessPattern::random && piece.length > kFewPages) return;
  if (reply.size() != piece.length || block.size() > kMaxBypassCell ||
      std::uint64_t{piece.length} * kMaxBypassShare > block.size() || block.begin > piece.inner || block.end < end)
    return;
  reply.note_block({piece.inner - block.begin, block.end - end});
}

/// Waits for the server, if there is one, that the cells without a pin come from.
codec::Result<void> fetch_missing(const frame::ChunkReader& reader, const CacheBlockLayout& layout, std::uint32_t first,
                                  const std::vector<BlockCache::Lookup>& cells) {
  const auto is_missing = [](const BlockCache::Lookup& cell) { return !cell.pin; };
  for (auto begin = cells.begin(); begin != cells.end();) {
    begin = std::find_if(begin, cells.end(), is_missing);
    const auto end = std::find_if_not(begin, cells.end(), is_missing);
    if (begin == end) break;
    const auto last = first + static_cast<std::uint32_t>(end - cells.begin()) - 1;
    const std::uint32_t block = layout.first_block(first + static_cast<std::uint32_t>(begin - cells.begin()));
    auto near = reader.fetch(block, layout.first_block(last) + layout.block_count(last) - block);
    if (!near) return near;
    begin = end;
  }
  return {};
}

/// Returns the end (exclusive) of the cells that are decoded ahead together.
std::uint32_t claim_end(const CacheBlockLayout& layout, std::uint32_t first, std::uint32_t last) {
  std::uint32_t cell = first;
  for (std::uint64_t bytes = 0; cell <= last && bytes < kClaimBytes; ++cell)
    bytes += layout.range(cell).size();
  return cell;
}

}  // namespace

ReadPath::ReadPath(std::uint64_t cache_bound, DecodingStatistics& statistics, DedupLogger& once, unsigned decoders)
    : statistics_(statistics),
      once_(once),
      cache_(cache_bound, pool_, statistics),
      budget_(std::clamp(cache_bound / 8 * 5, kMinDecodeBytes, kDecodeBytes), decoders),
      small_turns_(std::size_t{kSmallReads} * decoders),
      large_turns_(decoders, [this] { return cache_.pinned_bytes() <= std::max(cache_.bound() / 2, kMinPinned); }) {}

codec::Turns& ReadPath::turns_for(std::uint64_t cell_bytes) {
  return cell_bytes > kLargeCell ? large_turns_ : small_turns_;
}

codec::Failure ReadPath::report(const FrameSnapshot& snapshot, codec::Error error) {
  if (error.path.empty()) error.path = snapshot.path();
  // A version that is gone is not damage: the caller reads the next one, or reports that there is none.
  if (error.kind != codec::ErrorKind::stale) snapshot.damage().add(error);
  return codec::Failure(std::move(error));
}

void ReadPath::log_damage(const std::vector<codec::Error>& notes) {
  for (const codec::Error& note : notes)
    once_.error(note);
}

codec::Result<void> ReadPath::read(const FrameSnapshot& snapshot, frame::FlatOffset at, std::uint64_t length,
                                   Reply& reply, AccessPattern pattern) {
  const std::uint64_t size = snapshot.view().size();
  if (at.value >= size) return {};
  length = std::min(length, size - at.value);
  if (const codec::ByteView head = snapshot.view().head(); at.value < head.size()) {
    const auto part = static_cast<std::size_t>(std::min<std::uint64_t>(length, head.size() - at.value));
    Buffer buffer = pool_.get(part);
    std::memcpy(buffer.bytes().data(), head.data() + at.value, part);
    reply.add(std::move(buffer), part);
    at.value += part;
    length -= part;
    if (length == 0) return {};
  }
  if (const frame::ArrayGeometry* array = snapshot.view().array()) {
    return gather(snapshot, *array, at.value, length, pattern, reply);
  }
  std::vector<frame::Piece> pieces;
  if (auto mapped = snapshot.view().chunk_order()->map(at, length, pieces); !mapped)
    return report(snapshot, mapped.error());

  if (pieces.size() < kManyPieces) {
    for (const frame::Piece& piece : pieces) {
      if (auto done = read_piece(snapshot, piece, pattern, reply); !done) return done;
    }
    return {};
  }
  Buffer gathered = pool_.get(length);
  for (const frame::Piece& piece : pieces) {
    Reply part(reply.permit());
    if (auto done = read_piece(snapshot, piece, pattern, part); !done) return done;
    part.copy_to(gathered.bytes().data() + piece.out);
  }
  reply.add(std::move(gathered), length);
  return {};
}

codec::Result<void> ReadPath::read_piece(const FrameSnapshot& snapshot, const frame::Piece& piece,
                                         AccessPattern pattern, Reply& reply) {
  auto reader = snapshot.reader(piece.chunk, bytes_of(piece));
  if (!reader) return report(snapshot, reader.error());
  switch ((*reader)->storage()) {
    case frame::Storage::zeros:
      reply.add_zeros(piece.length);
      return {};
    case frame::Storage::raw: {
      // The system's page cache holds the bytes, so caching them would not help.
      Buffer buffer = pool_.get(piece.length);
      if (auto done = (*reader)->read_plain(piece.inner, buffer.bytes()); !done) return report(snapshot, done.error());
      statistics_.bytes_fetched.fetch_add(piece.length, std::memory_order_relaxed);
      reply.add(std::move(buffer), piece.length);
      note_block(plain_block(**reader, piece.inner), piece, pattern, reply);
      return {};
    }
    case frame::Storage::blocks:
      break;
  }
  auto done = read_cells(snapshot, **reader, piece, pattern, reply);
  const CacheBlockLayout layout((*reader)->decoder());
  if (done) note_block(layout.range(layout.cell_at(piece.inner)), piece, pattern, reply);
  return done;
}

codec::Result<void> ReadPath::read_cells(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                         const frame::Piece& piece, AccessPattern pattern, Reply& reply) {
  const CacheBlockLayout layout(reader.decoder());
  const std::uint32_t first = layout.cell_at(piece.inner);
  const std::uint32_t last = layout.cell_at(piece.inner + piece.length - 1);
  // Only cells of one block: damage of a block is then reported however little is read of it.
  const bool bypasses = pattern == AccessPattern::random && first == last && layout.block_count(first) == 1 &&
                        piece.length * kMaxBypassShare <= layout.range(first).size() &&
                        layout.range(first).size() <= kMaxBypassCell &&
                        reader.decoder().decodes_partial(layout.first_block(first));

  const auto keep = pattern == AccessPattern::strided_reuse ? BlockCache::Retention::until_consumed
                                                            : BlockCache::Retention::probation;

  std::vector<BlockCache::Lookup> cells;
  cells.reserve(last - first + 1);
  const auto key_of = [&](std::uint32_t cell) { return CacheKey{snapshot.id(), piece.chunk.value, cell}; };
  bool all_known = true;
  for (std::uint32_t cell = first; cell <= last; ++cell) {
    cells.push_back(cache_.find_known(key_of(cell)));
    all_known = all_known && cells.back().pin;
  }
  if (!all_known) {
    if (auto near = fetch_missing(reader, layout, first, cells); !near) return report(snapshot, near.error());
    if (auto entered = reply.permit().enter(turns_for(layout.range(first).size())); !entered) return entered;
  }
  std::uint64_t misses = 0;
  for (std::uint32_t cell = first; cell <= last; ++cell) {
    BlockCache::Lookup& lookup = cells[cell - first];
    if (lookup.pin) continue;
    const std::size_t size = layout.range(cell).size();
    lookup = bypasses ? cache_.find_or_bypass(key_of(cell), size) : cache_.find(key_of(cell), size, keep);
    misses += lookup.found == BlockCache::Found::load || lookup.found == BlockCache::Found::bypass ? 1 : 0;
  }
  statistics_.cache_misses.fetch_add(misses, std::memory_order_relaxed);
  statistics_.cache_hits.fetch_add(cells.size() - misses, std::memory_order_relaxed);

  if (cells.front().found == BlockCache::Found::bypass) {
    Buffer buffer = pool_.get(piece.length);
    const auto begin = static_cast<std::uint32_t>(piece.inner - layout.range(first).begin);
    auto done = bypass(snapshot, reader, layout, first, begin, buffer.bytes(), cells.front().pin);
    if (done) reply.add(std::move(buffer), piece.length);
    return done;
  }
  codec::Result<void> result = misses == 0 ? codec::Result<void>() : load_runs(snapshot, reader, layout, first, cells);
  if (!result) return result;

  for (std::uint32_t cell = first; cell <= last; ++cell) {
    BlockCache::Lookup& lookup = cells[cell - first];
    if (lookup.found == BlockCache::Found::busy) {
      if (auto done = cache_.wait(lookup.pin); !done) return report(snapshot, done.error());
    }
    const codec::ByteRange range = layout.range(cell);
    const std::uint64_t begin = std::max<std::uint64_t>(range.begin, piece.inner);
    const std::uint64_t end = std::min<std::uint64_t>(range.end, std::uint64_t{piece.inner} + piece.length);
    const codec::ByteView bytes = codec::ByteView(lookup.pin.bytes()).subspan(begin - range.begin, end - begin);
    reply.add(std::move(lookup.pin), bytes);
  }
  return {};
}

/// Decodes the bytes of a one-block cell from `begin` into `out`, bypassing the cache. `pin`: from find_or_bypass();
/// the bypass is finished on return, also after an error.
codec::Result<void> ReadPath::bypass(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                     const CacheBlockLayout& layout, std::uint32_t cell, std::uint32_t begin,
                                     codec::ByteSpan out, BlockCache::Pin& pin) {
  const std::uint32_t block = layout.first_block(cell);
  const Run run{cell, {&pin}};
  {
    const ByteBudget::Reservation share(budget_, reader.scratch_bytes(block, 1) + 3 * std::uint64_t{out.size()});
    const codec::ContextPool::PooledPtr context = contexts_.acquire();
    const Stopwatch watch(statistics_.decode_time);
    auto decoded = reader.decode_partial(*context, block, begin, out);
    if (!decoded) {
      fail(snapshot, run, decoded.error());
      return report(snapshot, decoded.error());
    }
  }
  statistics_.blocks_decoded.fetch_add(1, std::memory_order_relaxed);
  statistics_.bytes_decoded.fetch_add(out.size(), std::memory_order_relaxed);
  statistics_.bytes_fetched.fetch_add(reader.decoder().stored_range(block).size(), std::memory_order_relaxed);
  // Threads that have begun to wait get the result from load().
  if (cache_.finish_bypass(pin, layout.range(cell).size())) static_cast<void>(load(snapshot, reader, layout, run));
  return {};
}

codec::Result<void> ReadPath::load_runs(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                        const CacheBlockLayout& layout, std::uint32_t first_cell,
                                        std::vector<BlockCache::Lookup>& cells) {
  codec::Result<void> result;
  for (std::size_t i = 0; i < cells.size();) {
    if (cells[i].found != BlockCache::Found::load) {
      ++i;
      continue;
    }
    Run run{first_cell + static_cast<std::uint32_t>(i), {}};
    for (std::uint64_t bytes = 0; i < cells.size() && cells[i].found == BlockCache::Found::load && bytes < kRunBytes;
         ++i) {
      bytes += cells[i].pin.bytes().size();
      run.pins.push_back(&cells[i].pin);
    }
    // Publish or fail every claimed cell, also after an error: other threads may be waiting for it.
    if (auto loaded = load(snapshot, reader, layout, run); !loaded && result) result = loaded;
  }
  return result;
}

codec::Result<void> ReadPath::load(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                   const CacheBlockLayout& layout, const Run& run) {
  BlockCache::Pin reference_pin;
  codec::ByteView reference;
  if (reader.decoder().needs_reference() && run.first_cell > 0) {
    auto pin = reference_cell(snapshot, reader, layout);
    if (!pin) {
      fail(snapshot, run, pin.error());
      return codec::Failure(pin.error());
    }
    reference_pin = std::move(*pin);
    reference = codec::ByteView(reference_pin.bytes()).first(reader.decoder().block_range(0).size());
  }
  auto decoded = decode(reader, layout, run, reference);
  if (decoded) {
    publish(run);
    return {};
  }
  if (run.pins.size() == 1) {
    fail(snapshot, run, decoded.error());
    return report(snapshot, decoded.error());
  }
  // Decode the blocks one by one, so that a damaged one does not fail its neighbours.
  codec::Result<void> result;
  for (std::size_t i = 0; i < run.pins.size(); ++i) {
    const Run single{run.first_cell + static_cast<std::uint32_t>(i), {run.pins[i]}};
    if (auto loaded = load(snapshot, reader, layout, single); !loaded && result) result = loaded;
  }
  return result;
}

codec::Result<void> ReadPath::decode(const frame::ChunkReader& reader, const CacheBlockLayout& layout, const Run& run,
                                     codec::ByteView reference) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  const std::uint32_t first_block = layout.first_block(run.first_cell);
  std::vector<codec::ByteSpan> outs;
  std::uint64_t plain = 0;
  for (std::size_t i = 0; i < run.pins.size(); ++i) {
    const std::uint32_t cell = run.first_cell + static_cast<std::uint32_t>(i);
    const codec::ByteSpan bytes = run.pins[i]->bytes();
    const std::uint64_t begin = layout.range(cell).begin;
    for (std::uint32_t b = 0; b < layout.block_count(cell); ++b) {
      const codec::ByteRange range = decoder.block_range(layout.first_block(cell) + b);
      outs.push_back(bytes.subspan(range.begin - begin, range.size()));
    }
    plain += bytes.size();
  }
  // The memory of the cells is touched here for the first time. Cells of huge blocks may be larger than the room that
  // the cache can make while they are held.
  const std::uint64_t scratch = reader.scratch_bytes(first_block, static_cast<std::uint32_t>(outs.size()));
  const ByteBudget::Reservation share(budget_, scratch + plain);
  const codec::ContextPool::PooledPtr context = contexts_.acquire();
  const Stopwatch watch(statistics_.decode_time);
  auto decoded = reader.decode(*context, first_block, outs, reference);
  if (!decoded) return decoded;
  std::uint64_t stored = 0;
  for (std::uint32_t b = 0; b < outs.size(); ++b)
    stored += decoder.stored_range(first_block + b).size();
  statistics_.blocks_decoded.fetch_add(outs.size(), std::memory_order_relaxed);
  statistics_.bytes_decoded.fetch_add(plain, std::memory_order_relaxed);
  statistics_.bytes_fetched.fetch_add(stored, std::memory_order_relaxed);
  return {};
}

codec::Result<std::uint64_t> ReadPath::read_chunk(const FrameSnapshot& snapshot, frame::ChunkNumber chunk,
                                                  codec::ByteSpan out) {
  const auto failed = [&](codec::Error error) {
    if (error.path.empty()) error.path = snapshot.path();
    if (error.kind != codec::ErrorKind::stale) once_.error(error);
    return codec::Failure(std::move(error));
  };
  const auto reader = snapshot.reader(chunk);
  if (!reader) return failed(reader.error());
  const codec::ChunkDecoder& decoder = (*reader)->decoder();
  const auto nbytes = static_cast<std::size_t>(decoder.nbytes());
  if (nbytes > out.size()) {
    return failed(codec::corrupt(fmt::format("chunk {} has {} bytes, more than the chunk size of {}", chunk.value,
                                             nbytes, out.size()))
                      .value());
  }
  const ByteBudget::Reservation share(budget_, (*reader)->scratch_bytes(0, decoder.block_count()));
  const codec::ContextPool::PooledPtr context = contexts_.acquire();
  const Stopwatch watch(statistics_.decode_time);
  if (auto done = frame::decode_whole(*context, **reader, out.first(nbytes)); !done) return failed(done.error());
  statistics_.blocks_decoded.fetch_add(decoder.block_count(), std::memory_order_relaxed);
  statistics_.bytes_decoded.fetch_add(nbytes, std::memory_order_relaxed);
  return std::uint64_t{nbytes};
}

codec::Result<void> ReadPath::read_blocks(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                          const std::vector<bool>& wanted, codec::ByteSpan out) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  const codec::ContextPool::PooledPtr context = contexts_.acquire();
  const Stopwatch watch(statistics_.decode_time);
  for (std::uint32_t block = 0; block < decoder.block_count() && block < wanted.size(); ++block) {
    if (!wanted[block]) continue;
    const codec::ByteRange range = decoder.block_range(block);
    const ByteBudget::Reservation share(budget_, reader.scratch_bytes(block, 1));
    const std::array<codec::ByteSpan, 1> place = {out.subspan(range.begin, range.size())};
    if (auto done = reader.decode(*context, block, place, {}); !done) {
      codec::Error error = std::move(done.error());
      if (error.path.empty()) error.path = snapshot.path();
      if (error.kind != codec::ErrorKind::stale) once_.error(error);
      return codec::Failure(std::move(error));
    }
    statistics_.blocks_decoded.fetch_add(1, std::memory_order_relaxed);
    statistics_.bytes_decoded.fetch_add(range.size(), std::memory_order_relaxed);
  }
  return {};
}

codec::Result<BlockCache::Pin> ReadPath::reference_cell(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                                        const CacheBlockLayout& layout) {
  const CacheKey key{snapshot.id(), reader.chunk().value, 0};
  BlockCache::Lookup lookup = cache_.find(key, layout.range(0).size());
  if (lookup.found == BlockCache::Found::load) {
    const Run run{0, {&lookup.pin}};
    if (auto loaded = load(snapshot, reader, layout, run); !loaded) return codec::Failure(loaded.error());
  } else if (lookup.found == BlockCache::Found::busy) {
    if (auto done = cache_.wait(lookup.pin); !done) return codec::Failure(done.error());
  }
  return std::move(lookup.pin);
}

void ReadPath::publish(const Run& run) {
  for (const BlockCache::Pin* pin : run.pins)
    cache_.publish(*pin);
}

void ReadPath::fail(const FrameSnapshot& snapshot, const Run& run, const codec::Error& error) {
  codec::Error with_path = error;
  if (with_path.path.empty()) with_path.path = snapshot.path();
  for (BlockCache::Pin* pin : run.pins)
    cache_.fail(std::move(*pin), with_path);
}

/// Waits for the server, if there is one, that the cells from `first` to before `end` come from, before they are
/// claimed and take a turn to decode: readers that come up meanwhile fetch and decode themselves.
bool ReadPath::fetch_ahead(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                           const CacheBlockLayout& layout, std::uint32_t first, std::uint32_t end) {
  if (!reader.is_remote()) return true;
  std::vector<BlockCache::Lookup> cells;
  for (std::uint32_t cell = first; cell < end; ++cell)
    cells.push_back(cache_.find_known({snapshot.id(), reader.chunk().value, cell}));
  return fetch_missing(reader, layout, first, cells).has_value();
}

void ReadPath::decode_ahead(const FrameSnapshot& snapshot, frame::FlatOffset at, std::uint64_t length,
                            const std::function<bool()>& wanted) {
  const std::uint64_t size = snapshot.view().size();
  if (at.value >= size) return;
  length = std::min(length, size - at.value);
  if (const frame::ArrayGeometry* array = snapshot.view().array()) {
    return gather_ahead(snapshot, *array, at.value, length, wanted);
  }
  std::vector<frame::Piece> pieces;
  if (!snapshot.view().chunk_order()->map(at, length, pieces)) return;
  for (const frame::Piece& piece : pieces) {
    if (!wanted()) return;
    auto reader = snapshot.reader(piece.chunk, bytes_of(piece));
    if (!reader) continue;
    if ((*reader)->storage() != frame::Storage::blocks) continue;
    const CacheBlockLayout layout((*reader)->decoder());
    const std::uint32_t first = layout.cell_at(piece.inner);
    const std::uint32_t last = layout.cell_at(piece.inner + piece.length - 1);
    for (std::uint32_t cell = first; cell <= last && wanted();) {
      // Claim only what is decoded next: a reader that has come up decodes the blocks after it meanwhile.
      const std::uint32_t first_claimed = cell;
      const std::uint32_t end = claim_end(layout, cell, last);
      if (!fetch_ahead(snapshot, **reader, layout, cell, end)) break;
      std::vector<BlockCache::Lookup> cells;
      for (; cell < end; ++cell) {
        const CacheKey key{snapshot.id(), piece.chunk.value, cell};
        BlockCache::Pin pin = cache_.find_to_load(key, layout.range(cell).size());
        const auto found = pin ? BlockCache::Found::load : BlockCache::Found::ready;
        statistics_.prefetched_blocks.fetch_add(pin ? 1 : 0, std::memory_order_relaxed);
        cells.push_back({std::move(pin), found});
      }
      static_cast<void>(load_runs(snapshot, **reader, layout, first_claimed, cells));
    }
  }
}

}  // namespace cframefs::fs
