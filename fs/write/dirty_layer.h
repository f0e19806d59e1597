// The bytes that programs have written over one version of a frame and that are not committed yet.
//
// A layer lies over a lower one: the layer that is being committed, or the committed frame. It holds whole chunks,
// patches of chunks whose other bytes are those below, the file's size, and kept(): the number of bytes of the lower
// layer that remain visible. Lower bytes from kept() on are gone (the file was shorter once), so that bytes which are
// not in this layer read as zeros there.
//
// Chunks of zeros are stored as runs, so that a hole of any length costs as much as one chunk. Beyond kept() they are
// not stored at all.
//
// Invariants: kept() <= size(); kept() is at most the size of the lower layer; the bytes of a chunk past size() are
// zero; for each chunk the layer has all bytes, patches, a run of zeros, or nothing. Thread safety: none; the file's
// mutex guards the layer. Ownership: buffers are shared, so that a commit can encode chunks that programs no longer
// change. Units: bytes; chunk numbers count from 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "frame/base/chunk_intervals.h"
#include "fs/util/buffer_pool.h"
#include "fs/write/chunk_patches.h"

namespace cframefs::fs {

struct Preencode;

/// Returns the sum, or UINT64_MAX if it overflows.
constexpr std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

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

class DirtyLayer {
 public:
  /// nullptr: a chunk of zeros.
  using Chunk = std::shared_ptr<DirtyChunk>;
  using Chunks = std::map<std::int64_t, Chunk>;
  using Patches = std::map<std::int64_t, std::shared_ptr<ChunkPatches>>;
  /// Makes a chunk of `size` zeros.
  using Make = std::function<Chunk(std::uint64_t size)>;

  DirtyLayer() = default;
  DirtyLayer(std::uint64_t chunksize, std::uint64_t size_below)
      : chunksize_(chunksize), kept_(size_below), size_(size_below) {}

  std::uint64_t chunksize() const { return chunksize_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t size() const { return size_; }
  /// Returns the chunks that are not zeros.
  const Chunks& chunks() const { return chunks_; }
  const frame::ChunkIntervals& zeros() const { return zeros_; }
  const Patches& patches() const { return patches_; }
  /// Returns whether the layer changes anything of a lower layer of `size_below` bytes.
  bool differs_from(std::uint64_t size_below) const {
    return !chunks_.empty() || !zeros_.empty() || !patches_.empty() || kept_ != size_below || size_ != size_below;
  }

  /// Returns the chunk if the layer has all of it (a nullptr entry for zeros); nullptr otherwise.
  const Chunk* find(std::int64_t number) const;
  /// Returns nullptr if the layer has no patches of the chunk.
  const ChunkPatches* find_patches(std::int64_t number) const;
  /// Stores a whole chunk, in place of all that the layer has of it.
  void put(std::int64_t number, Chunk chunk);
  /// Sets the chunks of [begin, end) to zeros.
  void put_zeros(std::int64_t begin, std::int64_t end);
  /// Writes into a chunk of which the layer does not have all bytes. `counter`: as for ChunkPatches.
  ChunkPatches& patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                      std::atomic<std::uint64_t>& counter);
  void drop_patches(std::int64_t number) { patches_.erase(number); }
  /// Records that bytes from `at` on change in a chunk of the layer.
  void touch(std::uint64_t at) {
    if (at < clean_until_) clean_until_ = 0;
  }
  void grow(std::uint64_t size) { size_ = std::max(size_, size); }
  /// Returns the chunk for a change: a copy of it if it is encoded early. REQUIRES: the layer has it and it is not
  /// zeros.
  DirtyChunk& to_change(std::int64_t number);
  /// Sets the size. Growing appends zeros. Shrinking removes the bytes from `size` on, here and below. REQUIRES: the
  /// chunk with the new end, if it is in this layer, is in no other one.
  void resize(std::uint64_t size);
  /// Shrinks by whole chunks without a change of kept(). REQUIRES: kept() <= size, a multiple of chunksize().
  void resize_whole_chunks(std::uint64_t size);
  /// Truncates the layer to `size` and returns the rest as a layer over this one. REQUIRES: kept() <= size <=
  /// this->size().
  DirtyLayer split_off(std::uint64_t size);
  /// Bytes of this layer before clean_until() equal those of the lower one: since a split both have the same chunk.
  std::uint64_t clean_until() const { return clean_until_; }
  /// Returns the uncompressed bytes of a chunk, given the layer's size.
  std::uint64_t length_of(std::int64_t number) const;

  /// Returns the memory that the layer takes.
  std::uint64_t footprint() const;

  /// Merges this layer into the lower one, `below`.
  void merge_into(DirtyLayer& below, const Make& make) const;
  /// Returns a layer of the same bytes with another chunk size. REQUIRES: kept() == 0.
  DirtyLayer rechunked(std::uint64_t chunksize, const Make& make) const;

 private:
  std::uint64_t chunksize_ = 1;
  std::uint64_t kept_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t clean_until_ = 0;
  Chunks chunks_;  // none is null
  frame::ChunkIntervals zeros_;
  Patches patches_;
};

}  // namespace cframefs::fs
