// The chunks that a DirtyLayer holds: of each one all bytes, patches, a run of zeros, or nothing.
//
// Chunks of zeros are stored as runs, so that a hole of any length costs as much as one chunk. DirtyChunks knows chunk
// numbers and bytes within a chunk; what lies below and where the file ends is the layer's matter.
//
// Invariant: a chunk is in at most one of whole(), zeros() and patches(). Thread safety: none; the file's mutex guards
// the chunks. Ownership: buffers are shared, so that a commit can encode chunks that programs no longer change. Units:
// bytes; chunk numbers count from 0.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "frame/base/chunk_intervals.h"
#include "fs/util/buffer_pool.h"
#include "fs/write/chunk_patches.h"

namespace cframefs::fs {

struct Preencode;

/// The uncompressed bytes of one chunk. A counter includes its footprint as long as it exists. The chunk holds little
/// more than the bytes written so far; bytes beyond are zeros. Once it is encoded early its bytes do not change.
class DirtyChunk {
 public:
  /// Estimated cost of a chunk in a layer, in a commit and among the encoded chunks.
  static constexpr std::uint64_t kOverhead = 512;

  /// Constructs a chunk of zeros, of which no byte is held.
  DirtyChunk(BufferPool& pool, std::uint64_t size, std::atomic<std::uint64_t>& counter)
      : pool_(pool), size_(size), counter_(counter) {
    counter_.fetch_add(footprint(), std::memory_order_relaxed);
  }
  ~DirtyChunk() { counter_.fetch_sub(footprint(), std::memory_order_relaxed); }
  DirtyChunk(const DirtyChunk&) = delete;
  DirtyChunk& operator=(const DirtyChunk&) = delete;

  std::uint64_t size() const { return size_; }
  /// Returns the bytes that are held, which are the first ones.
  codec::ByteSpan bytes() const { return buffer_.bytes(); }
  /// Returns the memory that the chunk takes.
  std::uint64_t footprint() const { return buffer_.capacity() + kOverhead; }
  /// Holds the bytes before `to`. Bytes of [from, to) are undefined: the caller writes them next.
  void hold(std::uint64_t from, std::uint64_t to);
  /// Returns the first `length` bytes.
  std::vector<std::uint8_t> first(std::uint64_t length) const;
  /// Sets the bytes from `end` on to zero.
  void cut(std::uint64_t end);
  /// Returns a chunk of the same bytes, which is not encoded early.
  std::shared_ptr<DirtyChunk> copy() const;

  /// Records that [from, to) has been written. Returns true if this completes the chunk, filled in order from its
  /// start.
  bool note_written(std::uint64_t from, std::uint64_t to) {
    if (from != filled_) return false;
    filled_ = to;
    return is_filled();
  }
  bool is_filled() const { return filled_ == size_; }

  const std::shared_ptr<Preencode>& early() const { return early_; }
  void set_early(std::shared_ptr<Preencode> early) { early_ = std::move(early); }

 private:
  BufferPool& pool_;
  const std::uint64_t size_;
  Buffer buffer_;
  std::uint64_t filled_ = 0;
  std::shared_ptr<Preencode> early_;  // null: programs may still change the bytes
  std::atomic<std::uint64_t>& counter_;
};

class DirtyChunks {
 public:
  /// nullptr: a chunk of zeros.
  using Chunk = std::shared_ptr<DirtyChunk>;
  using Chunks = std::map<std::int64_t, Chunk>;
  using Patches = std::map<std::int64_t, std::shared_ptr<ChunkPatches>>;

  /// Returns the chunks of which all bytes are held and that are not zeros.
  const Chunks& whole() const { return whole_; }
  const frame::ChunkIntervals& zeros() const { return zeros_; }
  const Patches& patches() const { return patches_; }
  bool empty() const { return whole_.empty() && zeros_.empty() && patches_.empty(); }

  /// Returns the chunk if all of it is held (a nullptr entry for zeros); nullptr otherwise.
  const Chunk* find(std::int64_t number) const;
  /// Returns nullptr if there are no patches of the chunk.
  const ChunkPatches* find_patches(std::int64_t number) const;
  /// Returns the chunk for a change: a copy of it if it is encoded early. REQUIRES: the chunk is held and not zeros.
  DirtyChunk& to_change(std::int64_t number);

  /// Stores a whole chunk, in place of all that is held of it. REQUIRES: `chunk` is not null.
  void put(std::int64_t number, Chunk chunk);
  /// Sets the chunks of [begin, end) to zeros. Adds no run from `zeros_end` on, where chunks that are not held read as
  /// zeros.
  void put_zeros(std::int64_t begin, std::int64_t end, std::int64_t zeros_end);
  /// Writes into a chunk of which not all bytes are held. `counter`: as for ChunkPatches.
  ChunkPatches& patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                      std::atomic<std::uint64_t>& counter);
  /// Writes the bytes of `patches` into a chunk of which not all bytes are held. May keep `patches` itself.
  void put_patches(std::int64_t number, const std::shared_ptr<ChunkPatches>& patches);
  void drop_patches(std::int64_t number) { patches_.erase(number); }
  /// Drops all that is held of the chunks of [begin, end).
  void erase(std::int64_t begin, std::int64_t end);
  /// Drops the bytes after the first `inside` ones of the chunk `last`, and all chunks after it.
  void truncate(std::int64_t last, std::uint64_t inside);
  /// Moves the chunks and the zeros from the chunk `edge` on to the result; patches stay. If `inside` is not 0, the
  /// first `inside` bytes of `edge` stay as well.
  DirtyChunks split_off(std::int64_t edge, std::uint64_t inside);

  /// Returns the memory that the chunks take.
  std::uint64_t footprint() const;

 private:
  Chunks whole_;  // none is null
  frame::ChunkIntervals zeros_;
  Patches patches_;
};

}  // namespace cframefs::fs
