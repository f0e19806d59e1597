// The path of a read: flat range -> pieces of chunks -> cells of the cache -> missing cells are fetched and decoded.
//
// A thread claims every missing cell of a piece first, decodes and publishes the cells it has claimed, and only then
// waits for cells that other threads decode. Because a thread publishes everything it claimed before it waits, no wait
// cycle can form. (The one exception, block 0 of a delta chunk, is decoded without waiting for anything.)
//
// fs/read/array_read.cc does the same for n-d arrays, where each piece is a box of a block and is copied out of its
// cell.
//
// Thread safety: all members may be called concurrently. Ownership: one for a mount; must outlive replies and tasks.
// Errors: those of frame, with path filled in and noted in the snapshot (damage_notes.h). A failed cell fails only the
// reads that touch it.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "codec/stream/decode_context.h"
#include "frame/array/array_geometry.h"
#include "fs/read/block_cache.h"
#include "fs/read/frame_snapshot.h"
#include "fs/read/reply.h"
#include "fs/util/byte_budget.h"
#include "fs/util/log.h"
#include "fs/util/statistics.h"

namespace cframefs::fs {

class ReadPath {
 public:
  /// `decoders`: the most threads that decode large blocks at once, and the most that decode small ones.
  ReadPath(std::uint64_t cache_bound, DecodingStatistics& statistics, DedupLogger& once, unsigned decoders);

  /// The access pattern of a reader, as far as it is known.
  enum class AccessPattern : std::uint8_t {
    any,
    random,         // no locality expected: the reader has just jumped
    sequential,     // continues from the last read
    strided_reuse,  // revisits each cell until it is fully read
  };

  /// Appends the flat bytes [at, at + length) to `reply`, up to the end of the view.
  codec::Result<void> read(const FrameSnapshot& snapshot, frame::FlatOffset at, std::uint64_t length, Reply& reply,
                           AccessPattern pattern = AccessPattern::any);

  /// Decodes a whole chunk into the beginning of `out`, bypassing the cache. Returns the bytes of the chunk. Logs
  /// damage. Error corruption: the chunk is larger than `out`. REQUIRES: the caller holds the locks of the frame, so
  /// that no program writes it.
  codec::Result<std::uint64_t> read_chunk(const FrameSnapshot& snapshot, frame::ChunkNumber chunk, codec::ByteSpan out);

  /// Decodes the wanted blocks of a chunk to their places in `out`, bypassing the cache. Logs damage. `wanted`: for
  /// each block, as long as there are elements. REQUIRES: as read_chunk(); the wanted blocks lie in `out`; no block
  /// needs the bytes of another one.
  codec::Result<void> read_blocks(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                  const std::vector<bool>& wanted, codec::ByteSpan out);

  /// Decodes the cells of [at, at + length) that are neither ready nor loading, while `wanted` returns true. Ignores
  /// errors: the reader will report them.
  void decode_ahead(const FrameSnapshot& snapshot, frame::FlatOffset at, std::uint64_t length,
                    const std::function<bool()>& wanted);

  /// Logs errors that were noted, each once. REQUIRES: they are damage, see damage_notes.h.
  void log_damage(const std::vector<codec::Error>& notes);

  /// Returns the memory of cached blocks, idle buffers and idle contexts to the system.
  void release_memory() {
    pool_.relieve();
    contexts_.clear();
  }

  BlockCache& cache() { return cache_; }
  BufferPool& pool() { return pool_; }

 private:
  /// Neighbouring cells of one chunk that this thread has claimed.
  struct Run {
    std::uint32_t first_cell = 0;
    std::vector<BlockCache::Pin*> pins;
  };

  /// Boxes of one chunk that are read together, and their cells.
  struct Batch;
  struct Gathering;
  class TileCells;

  codec::Turns& turns_for(std::uint64_t cell_bytes);
  codec::Result<void> read_piece(const FrameSnapshot& snapshot, const frame::Piece& piece, AccessPattern pattern,
                                 Reply& reply);
  codec::Result<void> read_cells(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                 const frame::Piece& piece, AccessPattern pattern, Reply& reply);
  codec::Result<void> bypass(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                             const CacheBlockLayout& layout, std::uint32_t cell, std::uint32_t begin,
                             codec::ByteSpan out, BlockCache::Pin& pin);
  codec::Result<void> load_runs(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                const CacheBlockLayout& layout, std::uint32_t first_cell,
                                std::vector<BlockCache::Lookup>& cells);
  codec::Result<void> load(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                           const CacheBlockLayout& layout, const Run& run);
  codec::Result<void> decode(const frame::ChunkReader& reader, const CacheBlockLayout& layout, const Run& run,
                             codec::ByteView reference);
  /// Appends bytes [at, at + length) of an array. REQUIRES: the range lies after the view's head.
  codec::Result<void> gather(const FrameSnapshot& snapshot, const frame::ArrayGeometry& array, std::uint64_t at,
                             std::uint64_t length, AccessPattern pattern, Reply& reply);
  codec::Result<void> gather_part(const Gathering& gathering, const frame::ArrayGeometry::Part& part);
  std::uint64_t band_rows(const frame::ChunkReader& reader, const frame::ArrayGeometry& array) const;
  codec::Result<void> for_each_cells(
      const frame::ChunkReader& reader, const frame::ArrayGeometry& array, const frame::ArrayGeometry::Part& part,
      AccessPattern pattern,
      const std::function<codec::Result<void>(const TileCells&, const frame::ArrayGeometry::Part&)>& visit);
  codec::Result<void> gather_tiles(const Gathering& gathering, const TileCells& cells,
                                   const frame::ArrayGeometry::Part& part);
  codec::Result<void> gather_runs(const Gathering& gathering, const frame::ChunkReader& reader,
                                  const frame::ArrayGeometry::Part& part);
  codec::Result<void> take_batch(const Gathering& gathering, const TileCells& cells,
                                 const frame::ArrayGeometry::Part& part, Batch& batch);
  codec::Result<void> take_bypassed(const Gathering& gathering, const TileCells& cells, Batch& batch);
  codec::Result<void> load_batch(const FrameSnapshot& snapshot, const TileCells& cells, Batch& batch);
  codec::Result<void> load_band(const FrameSnapshot& snapshot, const TileCells& cells, std::uint32_t cell,
                                BlockCache::Pin& pin);
  bool fetch_ahead(const FrameSnapshot& snapshot, const frame::ChunkReader& reader, const CacheBlockLayout& layout,
                   std::uint32_t first, std::uint32_t end);
  bool fetch_ahead(const FrameSnapshot& snapshot, const frame::ArrayGeometry& array, const TileCells& cells,
                   const frame::ArrayGeometry::Part& part, const std::function<bool()>& wanted);
  codec::Result<void> load_ahead(const FrameSnapshot& snapshot, const frame::ArrayGeometry& array,
                                 const TileCells& cells, const frame::ArrayGeometry::Part& part,
                                 const std::function<bool()>& wanted);
  codec::Result<void> fetch_window(const Gathering& gathering, const frame::ChunkReader& reader, std::uint32_t inner,
                                   codec::ByteSpan window);
  void gather_ahead(const FrameSnapshot& snapshot, const frame::ArrayGeometry& array, std::uint64_t at,
                    std::uint64_t length, const std::function<bool()>& wanted);
  codec::Result<BlockCache::Pin> reference_cell(const FrameSnapshot& snapshot, const frame::ChunkReader& reader,
                                                const CacheBlockLayout& layout);
  void publish(const Run& run);
  void fail(const FrameSnapshot& snapshot, const Run& run, const codec::Error& error);
  static codec::Failure report(const FrameSnapshot& snapshot, codec::Error error);

  DecodingStatistics& statistics_;
  DedupLogger& once_;
  BufferPool pool_;
  BlockCache cache_;
  codec::ContextPool contexts_;
  ByteBudget budget_;
  codec::Turns small_turns_;
  codec::Turns large_turns_;
};

}  // namespace cframefs::fs
