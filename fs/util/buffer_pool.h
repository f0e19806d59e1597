// Pool of buffers for decoded bytes. Buffers are reused because the first touch of a fresh page costs as much as
// decoding into it. Idle buffers take at most 32 MiB, and no more than bound_idle() leaves (fs/read/block_cache.h).
//
// Buffers of 64 KiB and more are mapped one by one, so that trim() returns their memory to the system; smaller ones
// come from the heap. The pool requests no huge pages: in a virtual machine whose host reclaims free memory, the first
// touch of one took 15 ms. Thread safety: the pool is synchronised, a Buffer belongs to one thread at a time.
// Ownership: a Buffer returns to its pool when destroyed and must not outlive it. Units: bytes. Errors: get() throws
// std::bad_alloc if the system has no memory, as everywhere in the process.
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
  /// Returns the bytes of memory that the buffer occupies, at least its size.
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

  /// Sets the function that get() calls when the system has no memory, before get() tries once more. `give_back` should
  /// destroy buffers. REQUIRES: called before the first get().
  void on_shortage(std::function<void()> give_back) { on_shortage_ = std::move(give_back); }
  /// Sets the bound on idle buffers: `room` returns how many bytes other users of the same bound leave for them. The
  /// pool calls `room` without its lock. REQUIRES: called before the first get().
  void bound_idle(std::function<std::uint64_t()> room) { room_ = std::move(room); }

  /// Returns a buffer whose contents are unspecified. REQUIRES: the caller holds no lock that `give_back` takes.
  Buffer get(std::size_t size);
  /// Returns the bytes of memory that a buffer of `size` occupies.
  static std::size_t capacity_for(std::size_t size);
  /// Returns the bytes that get(size) would allocate: 0 if an idle buffer fits.
  std::size_t fresh_bytes(std::size_t size) const;
  /// Calls `give_back` and returns all idle buffers to the system. Called when the system has no memory.
  void relieve();
  /// Returns the bytes of buffers that are in the pool.
  std::size_t idle_bytes() const;
  /// Returns idle buffers to the system, largest first, until at most `keep` bytes are idle.
  void trim(std::size_t keep);

 private:
  friend class Buffer;
  using Idle = std::map<std::size_t, std::vector<std::uint8_t*>>;  // by capacity

  std::uint8_t* take(Idle::iterator place) REQUIRES(mutex_);
  void put(std::uint8_t* data, std::size_t capacity) noexcept;
  void keep(std::uint8_t* data, std::size_t capacity);
  void make_room(std::size_t capacity, std::size_t keep);

  std::function<void()> on_shortage_;
  std::function<std::uint64_t()> room_;
  mutable codec::Mutex mutex_;
  Idle idle_ GUARDED_BY(mutex_);
  std::size_t idle_bytes_ GUARDED_BY(mutex_) = 0;
};

}  // namespace cframefs::fs
