// What programs have written over one state of a frame and is not part of a newer state yet.
//
// A layer lies over another one: the layer that is being committed, or the committed frame. It holds whole chunks,
// patches of chunks whose other bytes are those below, the file's size, and how much of what lies below still counts:
// of the layer below, bytes from kept() on are gone (the file was shorter once), so that what is not in this layer
// reads as zeros there.
//
// Chunks of zeros are runs, so that a hole costs as much as one chunk, however long it is; where what lies below counts
// no longer they are not noted at all.
//
// Invariants: kept() <= size(); kept() is at most the size of the layer below; the bytes of a chunk past size() are
// zero; of a chunk the layer has all bytes, or patches, or it is of zeros, or neither. Thread safety: none; the file's
// mutex guards it. Ownership: buffers are shared, so that a commit can encode what programs no longer change. Units:
// bytes; chunk numbers count from 0.
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

/// The sum, or the largest number there is.
constexpr std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/// The plain bytes of one chunk, counted for as long as they exist, with what it costs to keep and to encode it. No
/// more is held than has been written, about: what is behind are zeros. Once it is encoded early its bytes stay as they
/// are.
class DirtyChunk {
 public:
  /// Of a chunk that has nothing but its place in a layer, in a commit and among the encoded ones, about.
  static constexpr std::uint64_t kOverhead = 512;

  /// Zeros, of which nothing is held.
  DirtyChunk(BufferPool& pool, std::uint64_t size, std::atomic<std::uint64_t>& counter)
      : pool_(pool), size_(size), counter_(counter) {
    counter_.fetch_add(footprint(), std::memory_order_relaxed);
  }
  ~DirtyChunk() { counter_.fetch_sub(footprint(), std::memory_order_relaxed); }
  DirtyChunk(const DirtyChunk&) = delete;
  DirtyChunk& operator=(const DirtyChunk&) = delete;

  std::uint64_t size() const { return size_; }
  /// Those that are held, from the first on.
  codec::ByteSpan bytes() const { return buffer_.bytes(); }
  /// Memory that it takes.
  std::uint64_t footprint() const { return buffer_.capacity() + kOverhead; }
  /// Holds the bytes before `to`, of which [from, to) are to be written now: what they are is not specified.
  void hold(std::uint64_t from, std::uint64_t to);
  /// The first `length` bytes.
  std::vector<std::uint8_t> first(std::uint64_t length) const;
  /// Bytes from `end` on become zeros.
  void cut(std::uint64_t end);
  /// Another chunk of the same bytes, which is not encoded early.
  std::shared_ptr<DirtyChunk> copy() const;

  /// [from, to) has been written. True: with that the chunk has been filled from one end to the other, in order.
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
  /// Null: a chunk of zeros.
  using Chunk = std::shared_ptr<DirtyChunk>;
  using Chunks = std::map<std::int64_t, Chunk>;
  using Patches = std::map<std::int64_t, std::shared_ptr<ChunkPatches>>;
  /// A new chunk of so many bytes, zeros.
  using Make = std::function<Chunk(std::uint64_t size)>;

  DirtyLayer() = default;
  DirtyLayer(std::uint64_t chunksize, std::uint64_t size_below)
      : chunksize_(chunksize), kept_(size_below), size_(size_below) {}

  std::uint64_t chunksize() const { return chunksize_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t size() const { return size_; }
  /// Those that are not zeros.
  const Chunks& chunks() const { return chunks_; }
  const frame::ChunkIntervals& zeros() const { return zeros_; }
  const Patches& patches() const { return patches_; }
  /// Whether it says anything that the layer of `size_below` bytes below does not.
  bool differs_from(std::uint64_t size_below) const {
    return !chunks_.empty() || !zeros_.empty() || !patches_.empty() || kept_ != size_below || size_ != size_below;
  }

  /// The chunk, if the layer has it; null pointer to the entry if not.
  const Chunk* find(std::int64_t number) const;
  /// Null: it has none.
  const ChunkPatches* find_patches(std::int64_t number) const;
  /// The whole chunk, in place of what there was of it.
  void put(std::int64_t number, Chunk chunk);
  /// Chunks of [begin, end) are zeros.
  void put_zeros(std::int64_t begin, std::int64_t end);
  /// Writes into a chunk that is not there whole. `counter`: as for ChunkPatches.
  ChunkPatches& patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                      std::atomic<std::uint64_t>& counter);
  void drop_patches(std::int64_t number) { patches_.erase(number); }
  /// Bytes from `at` on are changed in a chunk that the layer has.
  void touch(std::uint64_t at) {
    if (at < clean_until_) clean_until_ = 0;
  }
  void grow(std::uint64_t size) { size_ = std::max(size_, size); }
  /// The chunk, which must be there and not zeros, ready to be changed: a copy of it if it is encoded early.
  DirtyChunk& to_change(std::int64_t number);
  /// Longer: zeros. Shorter: what lay behind is gone, here and below. The chunk with the new end, if it is in the
  /// layer, must not be in another one.
  void resize(std::uint64_t size);
  /// Shorter by whole chunks that are nobody else's business: what is below stays. REQUIRES: kept() <= size, a multiple
  /// of chunksize().
  void resize_whole_chunks(std::uint64_t size);
  /// Cuts off what lies from `size` on and returns it, a layer over this one. REQUIRES: kept() <= size <= this->size().
  DirtyLayer split_off(std::uint64_t size);
  /// Bytes before this that the layer has are those of the layer below: it shares a chunk with it since a split.
  std::uint64_t clean_until() const { return clean_until_; }
  /// Plain bytes of a chunk as the layer's size has it.
  std::uint64_t length_of(std::int64_t number) const;

  /// Memory that it takes.
  std::uint64_t footprint() const;

  /// Puts this layer over `below`, which then is what both together say.
  void merge_into(DirtyLayer& below, const Make& make) const;
  /// The same bytes in chunks of another size. REQUIRES: kept() == 0.
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
