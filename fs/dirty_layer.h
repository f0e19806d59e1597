// What programs have written over one state of a frame and is not part of a newer state yet.
//
// A layer lies over another one: the layer that is being committed, or the committed frame. It holds whole chunks, a
// part of the file's size, and how much of what lies below still counts: of the layer below, bytes from kept() on are
// gone (the file was shorter once), so that what is not in this layer reads as zeros there.
//
// Invariants: kept() <= size(); kept() is at most the size of the layer below; the bytes of a chunk past size() are
// zero. Thread safety: none; the file's mutex guards it. Ownership: buffers are shared, so that a commit can encode
// what programs no longer change. Units: bytes; chunk numbers count from 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <vector>

#include "fs/buffer_pool.h"

namespace cframefs::fs {

/// The plain bytes of one chunk, counted for as long as they exist.
class DirtyChunk {
 public:
  DirtyChunk(BufferPool& pool, std::size_t size, std::atomic<std::uint64_t>& counter)
      : buffer_(pool.get(size)), counter_(counter) {
    counter_.fetch_add(buffer_.capacity(), std::memory_order_relaxed);
  }
  ~DirtyChunk() { counter_.fetch_sub(buffer_.capacity(), std::memory_order_relaxed); }
  DirtyChunk(const DirtyChunk&) = delete;
  DirtyChunk& operator=(const DirtyChunk&) = delete;

  codec::ByteSpan bytes() const { return buffer_.bytes(); }

 private:
  Buffer buffer_;
  std::atomic<std::uint64_t>& counter_;
};

class DirtyLayer {
 public:
  /// Null: a chunk of zeros.
  using Chunk = std::shared_ptr<DirtyChunk>;
  using Chunks = std::map<std::int64_t, Chunk>;

  DirtyLayer() = default;
  DirtyLayer(std::uint64_t chunksize, std::uint64_t size_below)
      : chunksize_(chunksize), kept_(size_below), size_(size_below) {}

  std::uint64_t chunksize() const { return chunksize_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t size() const { return size_; }
  const Chunks& chunks() const { return chunks_; }
  /// Whether it says anything that the layer of `size_below` bytes below does not.
  bool differs_from(std::uint64_t size_below) const {
    return !chunks_.empty() || kept_ != size_below || size_ != size_below;
  }

  /// The chunk, if the layer has it; null pointer to the entry if not.
  const Chunk* find(std::int64_t number) const;
  void put(std::int64_t number, Chunk chunk) { chunks_[number] = std::move(chunk); }
  /// Bytes from `at` on are changed in a chunk that the layer has.
  void touch(std::uint64_t at) {
    if (at < clean_until_) clean_until_ = 0;
  }
  void grow(std::uint64_t size) { size_ = std::max(size_, size); }
  /// Longer: zeros. Shorter: what lay behind is gone, here and below. The chunk with the new end, if it is in the
  /// layer, must not be shared.
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
  void merge_onto(DirtyLayer& below) const;
  /// The same bytes in chunks of another size. REQUIRES: kept() == 0. `make`: a new chunk, contents unspecified.
  template <class Make>
  DirtyLayer rechunked(std::uint64_t chunksize, Make make) const;

 private:
  std::uint64_t chunksize_ = 1;
  std::uint64_t kept_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t clean_until_ = 0;
  Chunks chunks_;
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

template <class Make>
DirtyLayer DirtyLayer::rechunked(std::uint64_t chunksize, Make make) const {
  DirtyLayer layer(chunksize, 0);
  layer.size_ = size_;
  for (const auto& [number, chunk] : chunks_) {
    if (!chunk) continue;
    const std::uint64_t begin = static_cast<std::uint64_t>(number) * chunksize_;
    const std::uint64_t end = begin + length_of(number);
    for (std::uint64_t at = begin; at < end;) {
      const std::uint64_t target = at / chunksize;
      const std::uint64_t step = std::min(end, (target + 1) * chunksize) - at;
      Chunk& into = layer.chunks_[static_cast<std::int64_t>(target)];
      if (!into) {
        into = make(chunksize);
        std::fill(into->bytes().begin(), into->bytes().end(), std::uint8_t{0});
      }
      const auto from = chunk->bytes().subspan(at - begin, step);
      std::copy(from.begin(), from.end(), into->bytes().begin() + static_cast<std::ptrdiff_t>(at % chunksize));
      at += step;
    }
  }
  return layer;
}

}  // namespace cframefs::fs
