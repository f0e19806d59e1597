#include "fs/util/buffer_pool.h"

#include <algorithm>
#include <new>

#include <sys/mman.h>

#include "codec/base/page_memory.h"
#include "fs/util/no_memory.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kMapped = std::size_t{64} << 10;  // from this capacity on, buffers are mapped
constexpr std::size_t kPopulated = std::size_t{1} << 20;
constexpr std::size_t kSmallStep = 64;
constexpr std::align_val_t kSmallAlignment{kSmallStep};
// Idle memory above this is never reused in practice.
constexpr std::size_t kMaxIdle = std::size_t{32} << 20;

/// Returns nullptr if there is no memory.
std::uint8_t* allocate(std::size_t capacity) {
  if (capacity >= kMapped) {
    // Up to kPopulated bytes the buffer is sure to be filled: one call maps all pages instead of a fault for each.
    const int populate = capacity <= kPopulated ? MAP_POPULATE : 0;
    void* mapped = mmap(nullptr, capacity, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | populate, -1, 0);
    return mapped == MAP_FAILED ? nullptr : static_cast<std::uint8_t*>(mapped);
  }
  return static_cast<std::uint8_t*>(::operator new(capacity, kSmallAlignment, std::nothrow));
}

void release(std::uint8_t* data, std::size_t capacity) {
  if (capacity >= kMapped) {
    munmap(data, capacity);
  } else {
    ::operator delete(data, kSmallAlignment);
  }
}

}  // namespace

void Buffer::reset() {
  if (data_ != nullptr) pool_->put(std::exchange(data_, nullptr), capacity_);
}

std::size_t BufferPool::capacity_for(std::size_t size) {
  const std::size_t step = size >= kMapped ? codec::page_size() : kSmallStep;
  return size == 0 ? step : (size + step - 1) / step * step;
}

BufferPool::~BufferPool() {
  trim(0);
}

Buffer BufferPool::get(std::size_t size) {
  const std::size_t capacity = capacity_for(size);
  {
    codec::MutexLock lock(mutex_);
    const auto found = idle_.find(capacity);
    if (found != idle_.end()) return {this, take(found), size, capacity};
  }
  std::uint8_t* data = allocate(capacity);
  if (data == nullptr) {
    relieve();
    data = allocate(capacity);
  }
  if (data == nullptr) throw std::bad_alloc();
  return {this, data, size, capacity};
}

void BufferPool::relieve() {
  if (on_shortage_) on_shortage_();
  trim(0);
}

std::size_t BufferPool::idle_bytes() const {
  codec::MutexLock lock(mutex_);
  return idle_bytes_;
}

std::size_t BufferPool::fresh_bytes(std::size_t size) const {
  const std::size_t capacity = capacity_for(size);
  codec::MutexLock lock(mutex_);
  return idle_.contains(capacity) ? 0 : capacity;
}

void BufferPool::trim(std::size_t keep) {
  for (;;) {
    std::uint8_t* data = nullptr;
    std::size_t capacity = 0;
    {
      codec::MutexLock lock(mutex_);
      if (idle_bytes_ <= keep || idle_.empty()) return;
      const auto largest = std::prev(idle_.end());
      capacity = largest->first;
      data = take(largest);
    }
    release(data, capacity);
  }
}

/// Returns idle buffers of other capacities to the system until at most `keep` bytes are idle: those of a length that
/// no user asks for any more must not keep out the ones that are in use.
void BufferPool::make_room(std::size_t capacity, std::size_t keep) {
  for (;;) {
    std::uint8_t* data = nullptr;
    std::size_t other = 0;
    {
      codec::MutexLock lock(mutex_);
      if (idle_bytes_ <= keep) return;
      auto largest = idle_.end();
      do {
        if (largest == idle_.begin()) return;
        --largest;
      } while (largest->first == capacity);
      other = largest->first;
      data = take(largest);
    }
    release(data, other);
  }
}

/// Takes a buffer of this capacity out of the pool.
std::uint8_t* BufferPool::take(Idle::iterator place) {
  std::uint8_t* data = place->second.back();
  place->second.pop_back();
  idle_bytes_ -= place->first;
  if (place->second.empty()) idle_.erase(place);
  return data;
}

void BufferPool::put(std::uint8_t* data, std::size_t capacity) noexcept {
  if (!try_in_memory([&] { keep(data, capacity); })) release(data, capacity);
}

void BufferPool::keep(std::uint8_t* data, std::size_t capacity) {
  const std::uint64_t most = room_ ? std::min<std::uint64_t>(room_(), kMaxIdle) : kMaxIdle;
  if (capacity <= most) make_room(capacity, most - capacity);
  {
    codec::MutexLock lock(mutex_);
    if (idle_bytes_ + capacity <= most) {
      auto known = idle_.try_emplace(capacity).first;
      try {
        known->second.push_back(data);
      } catch (...) {
        if (known->second.empty()) idle_.erase(known);
        throw;
      }
      idle_bytes_ += capacity;
      return;
    }
  }
  release(data, capacity);
}

}  // namespace cframefs::fs
