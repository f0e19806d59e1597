// One state of one frame, opened and ready to be read: what a file handle reads from.
//
// Handles that find the backing file unchanged share a snapshot; when it changes, the next one gets a new number, so
// cells of an older state are never served for a newer one, unless nothing but its times is found to have changed; they
// leave the cache with the last snapshot of that number. Thread safety: immutable but for the synchronised memory of
// chunk readers. Ownership: shared by handles and decode-ahead tasks; the cache must outlive it.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "frame/base/lru_cache.h"
#include "frame/container/chunk_reader.h"
#include "frame/container/flat_view.h"
#include "frame/io/read_record.h"
#include "fs/read/block_cache.h"

namespace cframefs::fs {

class FrameSnapshot {
 public:
  /// `cache`: what holds cells of it. `record`: of what has been read of the file; may be null.
  FrameSnapshot(std::uint64_t id, frame::FileVersion identity, std::shared_ptr<const frame::FlatView> view,
                std::string path, BlockCache& cache, std::shared_ptr<const frame::ReadRecord> record = nullptr);
  ~FrameSnapshot();
  FrameSnapshot(const FrameSnapshot&) = delete;
  FrameSnapshot& operator=(const FrameSnapshot&) = delete;
  /// The same state, whose file has other times now.
  std::shared_ptr<const FrameSnapshot> with_identity(const frame::FileVersion& identity) const;
  /// Whether the file, which has other times now, is what it was as far as anything is known of it.
  bool has_same_content(const frame::FileVersion& now) const;

  std::uint64_t id() const { return id_; }
  const frame::FileVersion& identity() const { return identity_; }
  const frame::FlatView& view() const { return *view_; }
  const frame::Container& container() const { return view_->container(); }
  /// Of the backing file, beneath the source, for messages.
  const std::string& path() const { return path_; }

  /// The reader of a chunk, kept for a while: the header of a chunk is read once for many small reads of it. All
  /// generations share a bound on what they keep.
  codec::Result<std::shared_ptr<const frame::ChunkReader>> reader(frame::ChunkNumber chunk) const;

  /// Has the disk begin to read the chunks that hold these bytes, if they lie one behind the other in the file. They
  /// must lie in the view; length: 1 or more.
  void prefetch(frame::FlatOffset at, std::uint64_t length) const;

 private:
  using Reader = std::shared_ptr<const frame::ChunkReader>;

  /// What the cache holds under one number: it goes with the last snapshot that has the number.
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

  static std::atomic<std::size_t> count_;  // of those that there are
  const std::uint64_t id_;
  const frame::FileVersion identity_;
  const std::shared_ptr<const frame::FlatView> view_;
  const std::string path_;
  const std::shared_ptr<const frame::ReadRecord> record_;
  const std::shared_ptr<const Cells> cells_;
  mutable frame::LruCache<std::int64_t, Reader> readers_;
};

/// How a chunk's blocks are gathered into the cells that the cache holds: one block each, or as many neighbours as make
/// 64 KiB, of the same row of blocks. A chunk is one row, unless it is a tile of an array: then a row is what follows
/// each other along the last dimension.
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
  /// Plain bytes of the chunk that the cell holds.
  codec::ByteRange range(std::uint32_t cell) const;

 private:
  const codec::ChunkDecoder* decoder_;
  std::uint32_t row_blocks_;
  std::uint32_t blocks_per_cell_;
  std::uint32_t cells_per_row_;
};

}  // namespace cframefs::fs
