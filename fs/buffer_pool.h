// Memory for decoded bytes, kept between uses: a fresh page costs as much as decoding into it.
//
// Buffers of 64 KiB to 1 MiB are cut from slabs of 2 MiB, for which the system is asked for huge pages (one fault where
// there would be hundreds); a slab goes back to the system when all its buffers lie idle. Larger buffers are mapped one
// by one, smaller ones come from the heap.
//
// Thread safety: the pool is synchronised, a Buffer belongs to one thread at a time. Ownership: a Buffer returns to its
// pool when destroyed and must not outlive it. Units: bytes. Errors: running out of memory throws std::bad_alloc, as
// everywhere in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <utility>
#include <vector>

#include "codec/bytes.h"
#include "codec/mutex.h"

namespace cframefs::fs {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept { *this = std::move(other); }
  Buffer& operator=(Buffer&& other) noexcept;
  ~Buffer() { reset(); }

  codec::ByteSpan bytes() const { return {memory_.data, size_}; }
  /// What the buffer takes of the memory, at least its size.
  std::size_t capacity() const { return memory_.capacity; }
  void reset();

 private:
  friend class BufferPool;
  struct Slab;
  struct Memory {
    std::uint8_t* data = nullptr;
    std::size_t capacity = 0;
    Slab* slab = nullptr;  // null: mapped or allocated on its own
  };
  Buffer(BufferPool* pool, Memory memory, std::size_t size) : pool_(pool), memory_(memory), size_(size) {}

  BufferPool* pool_ = nullptr;
  Memory memory_;
  std::size_t size_ = 0;
};

class BufferPool {
 public:
  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  static constexpr std::size_t kSlabBytes = std::size_t{2} << 20;

  /// Contents are unspecified.
  Buffer get(std::size_t size);
  /// What get(size) would have to ask of the system: 0 if a buffer lies idle.
  std::size_t fresh_bytes(std::size_t size) const;
  /// Bytes held by buffers that nobody uses.
  std::size_t idle_bytes() const;
  /// Gives idle memory back to the system, as far as whole slabs are idle, until at most `keep` bytes are idle. Returns
  /// how much was given back.
  std::size_t trim(std::size_t keep);

 private:
  friend class Buffer;
  using Memory = Buffer::Memory;

  static std::size_t capacity_for(std::size_t size);
  Memory allocate(std::size_t capacity);
  Memory cut_slab(std::size_t capacity);
  void put(const Memory& memory);

  mutable codec::Mutex mutex_;
  std::map<std::size_t, std::vector<Memory>> idle_ GUARDED_BY(mutex_);  // by capacity, the warmest last
  std::size_t idle_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
