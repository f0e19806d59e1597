// Memory for decoded bytes, kept between uses: a fresh page costs as much as decoding into it. At most 32 MiB lie idle,
// and no more than is left of the bound on what else is held (fs/read/block_cache.h).
//
// Buffers of 64 KiB and more are mapped one by one and really go back to the system when trimmed; smaller ones come
// from the heap. Huge pages are not asked for: in a virtual machine whose host takes free memory back, the first touch
// of one was measured at 15 ms. Thread safety: the pool is synchronised, a Buffer belongs to one thread at a time.
// Ownership: a Buffer returns to its pool when destroyed and must not outlive it. Units: bytes. Errors: running out of
// memory throws std::bad_alloc, as everywhere in the process.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/mutex.h"

namespace cframefs::fs {

class BufferPool;

class Buffer {
 public:
  Buffer() = default;
  Buffer(Buffer&& other) noexcept
      : pool_(std::exchange(other.pool_, nullptr)),
        data_(std::exchange(other.data_, nullptr)),
        size_(other.size_),
        capacity_(other.capacity_) {}
  Buffer& operator=(Buffer&& other) noexcept {
    if (this != &other) {
      reset();
      pool_ = std::exchange(other.pool_, nullptr);
      data_ = std::exchange(other.data_, nullptr);
      size_ = other.size_;
      capacity_ = other.capacity_;
    }
    return *this;
  }
  ~Buffer() { reset(); }

  codec::ByteSpan bytes() const { return {data_, size_}; }
  /// What the buffer takes of the memory, at least its size.
  std::size_t capacity() const { return capacity_; }
  void reset();

 private:
  friend class BufferPool;
  Buffer(BufferPool* pool, std::uint8_t* data, std::size_t size, std::size_t capacity)
      : pool_(pool), data_(data), size_(size), capacity_(capacity) {}

  BufferPool* pool_ = nullptr;
  std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  std::size_t capacity_ = 0;
};

class BufferPool {
 public:
  BufferPool() = default;
  ~BufferPool();
  BufferPool(const BufferPool&) = delete;
  BufferPool& operator=(const BufferPool&) = delete;

  /// `give_back` is called when the system has no memory, before get() tries once more: it is to let buffers go.
  /// REQUIRES: before the first get().
  void on_shortage(std::function<void()> give_back) { on_shortage_ = std::move(give_back); }
  /// `room`: for how many bytes of buffers that lie idle there is room, beside what else is under the same bound.
  /// Called without the pool's lock. REQUIRES: before the first get().
  void bound_idle(std::function<std::uint64_t()> room) { room_ = std::move(room); }

  /// Contents are unspecified. Not while holding a lock that `give_back` takes.
  Buffer get(std::size_t size);
  /// Asks the system for a buffer that get(size) can then give at once. Does nothing if there is no memory.
  void prepare(std::size_t size);
  /// What a buffer of `size` takes of the memory.
  static std::size_t capacity_for(std::size_t size);
  /// What get(size) would have to ask of the system: 0 if a buffer lies idle.
  std::size_t fresh_bytes(std::size_t size) const;
  /// The system has no memory: has buffers let go, and gives those that lie idle back.
  void relieve();
  /// Bytes held by buffers that nobody uses.
  std::size_t idle_bytes() const;
  /// Gives idle buffers back to the system, largest first, until at most `keep` bytes are idle.
  void trim(std::size_t keep);

 private:
  friend class Buffer;
  void put(std::uint8_t* data, std::size_t capacity) noexcept;
  void keep(std::uint8_t* data, std::size_t capacity);

  std::function<void()> on_shortage_;
  std::function<std::uint64_t()> room_;
  mutable codec::Mutex mutex_;
  std::map<std::size_t, std::vector<std::uint8_t*>> idle_ GUARDED_BY(mutex_);  // by capacity
  std::size_t idle_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
