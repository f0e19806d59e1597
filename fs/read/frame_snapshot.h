// One version of one frame, opened for reading: what a file handle reads from.
//
// Handles that find the backing file unchanged share a snapshot. When the file changes, the next handle gets a snapshot
// with a new number, so that cached blocks of an old version are never served for a newer one. The number stays if only
// the timestamps are found to have changed. The last snapshot of a number drops its blocks from the cache. Thread
// safety: immutable, except for the synchronised cache of chunk readers. Ownership: shared by handles and decode-ahead
// tasks; the cache must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "frame/array/flat_view.h"
#include "frame/base/lru_cache.h"
#include "frame/container/chunk_reader.h"
#include "frame/io/read_record.h"
#include "fs/read/block_cache.h"
#include "fs/read/block_touches.h"
#include "fs/read/damage_notes.h"

namespace cframefs::fs {

class FrameSnapshot {
 public:
  /// `cache`: holds the decoded blocks of the snapshot. `record`: of what has been read of the file; may be null.
  FrameSnapshot(std::uint64_t id, frame::FileVersion identity, std::shared_ptr<const frame::FlatView> view,
                std::string path, BlockCache& cache, std::shared_ptr<const frame::ReadRecord> record = nullptr);
  ~FrameSnapshot();
  FrameSnapshot(const FrameSnapshot&) = delete;
  FrameSnapshot& operator=(const FrameSnapshot&) = delete;
  /// Returns a snapshot of the same content, whose file has other timestamps now.
  std::shared_ptr<const FrameSnapshot> with_identity(const frame::FileVersion& identity) const;
  /// Returns whether only the timestamps of the file have changed, and all that was read of it is found unchanged.
  bool has_same_content(const frame::FileVersion& now) const;

  std::uint64_t id() const { return id_; }
  const frame::FileVersion& identity() const { return identity_; }
  const frame::FlatView& view() const { return *view_; }
  const frame::Container& container() const { return view_->container(); }
  /// Returns the path of the backing file relative to the source, for messages.
  const std::string& path() const { return path_; }

  /// Returns the errors that reads have met; snapshots of the same content share them.
  DamageNotes& damage() const { return *damage_; }

  /// Returns the counts of requests for each block; snapshots of the same content share them.
  BlockTouches& touches() const { return *touches_; }

  /// Returns the reader of a chunk and keeps it for a while, so that many small reads of a chunk parse its header once.
  /// All snapshots share a bound on the memory of kept readers. `soon`: as ChunkReader::open().
  codec::Result<std::shared_ptr<const frame::ChunkReader>> reader(
      frame::ChunkNumber chunk, const std::optional<codec::ByteRange>& soon = std::nullopt) const;

  /// Requests that the system read the chunks of these bytes, if they are contiguous in the file. REQUIRES: the bytes
  /// lie in the view; length is at least 1.
  void prefetch(frame::FlatOffset at, std::uint64_t length) const;

 private:
  using Reader = std::shared_ptr<const frame::ChunkReader>;

  /// Drops the cached blocks of a snapshot number with the last snapshot that has the number.
  class Cells {
   public:
    Cells(BlockCache& cache, std::uint64_t id) : cache_(cache), id_(id) {}
    ~Cells() { cache_.drop(id_); }
    Cells(const Cells&) = delete;
    Cells& operator=(const Cells&) = delete;

   private:
    BlockCache& cache_;
    const std::uint64_t id_;
  };

  FrameSnapshot(const FrameSnapshot& same, const frame::FileVersion& identity);

  static std::atomic<std::size_t> count_;  // of existing snapshots
  const std::uint64_t id_;
  const frame::FileVersion identity_;
  const std::shared_ptr<const frame::FlatView> view_;
  const std::string path_;
  const std::shared_ptr<const frame::ReadRecord> record_;
  const std::shared_ptr<const Cells> cells_;
  const std::shared_ptr<DamageNotes> damage_;
  const std::shared_ptr<BlockTouches> touches_;
  mutable frame::LruCache<std::int64_t, Reader> readers_;
};

/// Maps the blocks of a chunk to cache blocks ("cells"): one block each, or as many neighbours in the same row of
/// blocks as make 64 KiB. A chunk is one row, unless it is a tile of an array: then a row is a sequence of blocks along
/// the last dimension.
class CacheBlockLayout {
 public:
  explicit CacheBlockLayout(const codec::ChunkDecoder& decoder) : CacheBlockLayout(decoder, decoder.block_count()) {}
  CacheBlockLayout(const codec::ChunkDecoder& decoder, std::uint32_t row_blocks);

  std::uint32_t cell_at(std::uint32_t inner) const { return cell_of(decoder_->block_at(inner)); }
  std::uint32_t cell_of(std::uint32_t block) const {
    return block / row_blocks_ * cells_per_row_ + block % row_blocks_ / blocks_per_cell_;
  }
  std::uint32_t first_block(std::uint32_t cell) const {
    return cell / cells_per_row_ * row_blocks_ + cell % cells_per_row_ * blocks_per_cell_;
  }
  std::uint32_t block_count(std::uint32_t cell) const;
  /// Returns the range of the chunk's uncompressed bytes that the cell holds.
  codec::ByteRange range(std::uint32_t cell) const;

 private:
  const codec::ChunkDecoder* decoder_;
  std::uint32_t row_blocks_;
  std::uint32_t blocks_per_cell_;
  std::uint32_t cells_per_row_;
};

}  // namespace cframefs::fs
