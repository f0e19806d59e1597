// The bytes that programs have written over one version of a frame and that are not committed yet.
//
// A layer lies over a lower one: the layer that is being committed, or the committed frame. It holds chunks, patches of
// chunks whose other bytes are those below (DirtyChunks), the file's size, and kept(): the number of bytes of the lower
// layer that remain visible. Lower bytes from kept() on are gone (the file was shorter once), so that bytes which are
// not in this layer read as zeros there. Zeros beyond kept() are not stored.
//
// Invariants: kept() <= size(); kept() is at most the size of the lower layer; the bytes of a chunk past size() are
// zero. Thread safety: none; the file's mutex guards the layer. Ownership: that of DirtyChunks. Units: bytes; chunk
// numbers count from 0.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <functional>

#include "fs/write/dirty_chunks.h"

namespace cframefs::fs {

/// Returns the sum, or UINT64_MAX if it overflows.
constexpr std::uint64_t capped_sum(std::uint64_t a, std::uint64_t b) {
  return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

class DirtyLayer {
 public:
  /// nullptr: a chunk of zeros.
  using Chunk = DirtyChunks::Chunk;
  /// Makes a chunk of `size` zeros.
  using Make = std::function<Chunk(std::uint64_t size)>;

  DirtyLayer() = default;
  DirtyLayer(std::uint64_t chunksize, std::uint64_t size_below)
      : chunksize_(chunksize), kept_(size_below), size_(size_below) {}

  std::uint64_t chunksize() const { return chunksize_; }
  std::uint64_t kept() const { return kept_; }
  std::uint64_t size() const { return size_; }
  const DirtyChunks& chunks() const { return chunks_; }
  /// Returns whether the layer changes anything of a lower layer of `size_below` bytes.
  bool differs_from(std::uint64_t size_below) const {
    return !chunks_.empty() || kept_ != size_below || size_ != size_below;
  }

  /// Stores a whole chunk, in place of all that the layer has of it.
  void put(std::int64_t number, Chunk chunk);
  /// Sets the chunks of [begin, end) to zeros.
  void put_zeros(std::int64_t begin, std::int64_t end);
  /// Writes into a chunk of which the layer does not have all bytes. `counter`: as for ChunkPatches.
  ChunkPatches& patch(std::int64_t number, std::uint64_t from, codec::ByteView bytes,
                      std::atomic<std::uint64_t>& counter) {
    return chunks_.patch(number, from, bytes, counter);
  }
  void drop_patches(std::int64_t number) { chunks_.drop_patches(number); }
  /// Records that bytes from `at` on change in a chunk of the layer.
  void touch(std::uint64_t at) {
    if (at < clean_until_) clean_until_ = 0;
  }
  void grow(std::uint64_t size) { size_ = std::max(size_, size); }
  /// As DirtyChunks::to_change().
  DirtyChunk& to_change(std::int64_t number) { return chunks_.to_change(number); }
  /// Sets the size. Growing appends zeros. Shrinking removes the bytes from `size` on, here and below. REQUIRES: the
  /// chunk with the new end, if it is in this layer, is in no other one.
  void resize(std::uint64_t size);
  /// Truncates the layer to the chunks before the last one and returns that one as a layer over this one. REQUIRES: the
  /// layer has the last chunk, which is not empty, and kept() is at most its begin.
  DirtyLayer split_off_last();
  /// Truncates the layer to `size` and returns the rest as a layer over this one. REQUIRES: kept() <= size <=
  /// this->size().
  DirtyLayer split_off(std::uint64_t size);
  /// Bytes of this layer before clean_until() equal those of the lower one: since a split both have the same chunk.
  std::uint64_t clean_until() const { return clean_until_; }
  /// Returns the uncompressed bytes of a chunk, given the layer's size.
  std::uint64_t length_of(std::int64_t number) const;

  /// Merges this layer into the lower one, `below`.
  void merge_into(DirtyLayer& below, const Make& make) const;

 private:
  std::uint64_t chunksize_ = 1;
  std::uint64_t kept_ = 0;
  std::uint64_t size_ = 0;
  std::uint64_t clean_until_ = 0;
  DirtyChunks chunks_;
};

/// Returns a layer of the same bytes with another chunk size. REQUIRES: layer.kept() == 0.
DirtyLayer rechunked(const DirtyLayer& layer, std::uint64_t chunksize, const DirtyLayer::Make& make);

}  // namespace cframefs::fs
