// What programs have written over one state of a frame and is not part of a newer state yet.
//
// A layer lies over another one: the layer that is being committed, or the committed frame. It holds whole chunks,
// patches of chunks whose other bytes are those below, the file's size, and how much of what lies below still counts:
// of the layer below, bytes from kept() on are gone (the file was shorter once), so that what is not in this layer
// reads as zeros there.
//
// Invariants: kept() <= size(); kept() is at most the size of the layer below; the bytes of a chunk past size() are
// zero; a chunk that has patches is not there whole. Thread safety: none; the file's mutex guards it. Ownership:
// buffers are shared, so that a commit can encode what programs no longer change. Units: bytes; chunk numbers count
// from 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <vector>

#include "fs/buffer_pool.h"
#include "fs/chunk_patches.h"

namespace cframefs::fs {

struct EarlyEncoding;

/// The sum, or the largest number there is.
constexpr std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

/// The plain bytes of one chunk, counted for as long as they exist. Once it is encoded early its bytes stay as they
/// are.
class DirtyChunk {
 public:
  DirtyChunk(BufferPool& pool, std::size_t size, std::atomic<std::uint64_t>& counter)
      : pool_(pool), buffer_(pool.get(size)), counter_(counter) {
    counter_.fetch_add(buffer_.capacity(), std::memory_order_relaxed);
  }
  ~DirtyChunk() { counter_.fetch_sub(buffer_.capacity(), std::memory_order_relaxed); }
  DirtyChunk(const DirtyChunk&) = delete;
  DirtyChunk& operator=(const DirtyChunk&) = delete;

  codec::ByteSpan bytes() const { return buffer_.bytes(); }
  /// Another chunk of the same bytes, which is not encoded early.
  std::shared_ptr<DirtyChunk> copy() const;

  /// [from, to) has been written. True: with that the chunk has been filled from one end to the other, in order.
  bool note_written(std::uint64_t from, std::uint64_t to) {
    if (from != filled_) return false;
    filled_ = to;
    return filled_ == buffer_.bytes().size();
  }
  bool is_filled() const { return filled_ == buffer_.bytes().size(); }

  const std::shared_ptr<EarlyEncoding>& early() const { return early_; }
  void set_early(std::shared_ptr<EarlyEncoding> early) { early_ = std::move(early); }

 private:
  BufferPool& pool_;
  Buffer buffer_;
  std::uint64_t filled_ = 0;
  std::shared_ptr<EarlyEncoding> early_;  // null: programs may still change the bytes
  std::atomic<std::uint64_t>& counter_;
};

class DirtyLayer {
 public:
  /// Null: a chunk of zeros.
  using Chunk = std::shared_ptr<DirtyChunk>;
  using Chunks = std::map<std::int64_t, Chunk>;
  using Patches = std::map<std::int64_t, std::shared_ptr<ChunkPatches>>;
  /// A new chunk of so many bytes, contents unspecified.
  using Make = std::function<Chunk(std::uint64_t size)>;

  DirtyLayer() = default;
  DirtyLayer(std::uint64_t chunksize, std::uint64_t size_below)
      : chunksize_(chunksize), kept_(size_below), size_(size_below) {}

  std::uint64_t chunksize() const { return chunksize_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t size() const { return size_; }
  const Chunks& chunks() const { return chunks_; }
  const Patches& patches() const { return patches_; }
  /// Whether it says anything that the layer of `size_below` bytes below does not.
  bool differs_from(std::uint64_t size_below) const {
    return !chunks_.empty() || !patches_.empty() || kept_ != size_below || size_ != size_below;
  }

  /// The chunk, if the layer has it; null pointer to the entry if not.
  const Chunk* find(std::int64_t number) const;
  /// Null: it has none.
  const ChunkPatches* find_patches(std::int64_t number) const;
  /// The whole chunk, in place of what there was of it.
  void put(std::int64_t number, Chunk chunk);
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
  /// Cuts off what lies from `size` on and returns it, a layer over this one. `copy`: of a chunk, which both then have
  /// a part of. REQUIRES: kept() <= size <= this->size().
  template <class Copy>
  DirtyLayer split_off(std::uint64_t size, Copy copy);
  /// Bytes before this that the layer has are those of the layer below: it shares a chunk with it since a split.
  std::uint64_t clean_until() const { return clean_until_; }
  /// Plain bytes of a chunk as the layer's size has it.
  std::uint64_t length_of(std::int64_t number) const;

  /// Puts this layer over `below`, which then is what both together say.
  void merge_onto(DirtyLayer& below, const Make& make) const;
  /// The same bytes in chunks of another size. REQUIRES: kept() == 0.
  DirtyLayer rechunked(std::uint64_t chunksize, const Make& make) const;

 private:
  std::uint64_t chunksize_ = 1;
  std::uint64_t kept_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t clean_until_ = 0;
  Chunks chunks_;
  Patches patches_;
};

template <class Copy>
DirtyLayer DirtyLayer::split_off(std::uint64_t size, Copy copy) {
  DirtyLayer above(chunksize_, size);
  above.size_ = size_;
  const std::uint64_t inside = size % chunksize_;
  const auto first = chunks_.lower_bound(static_cast<std::int64_t>(size / chunksize_));
  above.chunks_.insert(first, chunks_.end());
  chunks_.erase(first, chunks_.end());
  size_ = size;
  if (const auto shared = above.chunks_.find(static_cast<std::int64_t>(size / chunksize_));
      inside != 0 && shared != above.chunks_.end()) {
    Chunk& mine = chunks_[shared->first];
    mine = shared->second ? copy(shared->second) : nullptr;
    if (mine)
      std::fill(mine->bytes().begin() + static_cast<std::ptrdiff_t>(inside), mine->bytes().end(), std::uint8_t{0});
    above.clean_until_ = size;
  }
  return above;
}

}  // namespace cframefs::fs
