#include "fs/buffer_pool.h"

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <memory>
#include <new>

#include <sys/mman.h>

namespace cframefs::fs {

/// Guarded by the pool's mutex once its buffers are handed out.
struct Buffer::Slab {
  std::uint8_t* data = nullptr;
  std::size_t buffers = 0;
  std::size_t idle = 0;
  bool leaving = false;  // trim() has chosen it
};

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kSmallStep = 64;
constexpr std::size_t kMinMapped = std::size_t{64} << 10;  // below, buffers come from the heap
constexpr std::size_t kMaxCut = std::size_t{1} << 20;      // above, buffers are mapped one by one

std::uint8_t* map(std::size_t bytes) {
  void* mapped = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  return static_cast<std::uint8_t*>(mapped);
}

/// Mapped memory that begins where a huge page can.
std::uint8_t* map_slab() {
  constexpr std::size_t slab = BufferPool::kSlabBytes;
  std::uint8_t* mapped = map(2 * slab);
  const std::size_t misfit = std::bit_cast<std::uintptr_t>(mapped) % slab;
  const std::size_t before = misfit == 0 ? 0 : slab - misfit;
  if (before > 0) munmap(mapped, before);
  munmap(mapped + before + slab, slab - before);
  madvise(mapped + before, slab, MADV_HUGEPAGE);
  return mapped + before;
}

bool is_cut(std::size_t capacity) {
  return capacity >= kMinMapped && capacity <= kMaxCut;
}

}  // namespace

Buffer& Buffer::operator=(Buffer&& other) noexcept {
  if (this != &other) {
    reset();
    pool_ = other.pool_;
    memory_ = std::exchange(other.memory_, Memory{});
    size_ = std::exchange(other.size_, 0);
  }
  return *this;
}

void Buffer::reset() {
  if (memory_.data != nullptr) pool_->put(std::exchange(memory_, Memory{}));
  size_ = 0;
}

BufferPool::~BufferPool() {
  trim(0);
}

std::size_t BufferPool::capacity_for(std::size_t size) {
  const std::size_t step = size >= kMinMapped ? kPage : kSmallStep;
  return std::max(step, (size + step - 1) / step * step);
}

BufferPool::Memory BufferPool::allocate(std::size_t capacity) {
  if (is_cut(capacity)) return cut_slab(capacity);
  if (capacity > kMaxCut) {
    std::uint8_t* data = map(capacity);
    madvise(data, capacity, MADV_HUGEPAGE);
    return {data, capacity, nullptr};
  }
  void* allocated = std::aligned_alloc(kSmallStep, capacity);
  if (allocated == nullptr) throw std::bad_alloc();
  return {static_cast<std::uint8_t*>(allocated), capacity, nullptr};
}

BufferPool::Memory BufferPool::cut_slab(std::size_t capacity) {
  auto slab = std::make_unique<Buffer::Slab>();
  slab->data = map_slab();
  slab->buffers = kSlabBytes / capacity;
  slab->idle = slab->buffers - 1;
  Buffer::Slab* owned = slab.release();  // lives until trim() finds it wholly idle
  codec::MutexLock lock(mutex_);
  for (std::size_t i = owned->buffers - 1; i > 0; --i) {
    idle_[capacity].push_back({owned->data + i * capacity, capacity, owned});
  }
  idle_bytes_ += owned->idle * capacity;
  return {owned->data, capacity, owned};
}

Buffer BufferPool::get(std::size_t size) {
  const std::size_t capacity = capacity_for(size);
  {
    codec::MutexLock lock(mutex_);
    auto found = idle_.find(capacity);
    if (found != idle_.end()) {
      const Memory memory = found->second.back();
      found->second.pop_back();
      if (found->second.empty()) idle_.erase(found);
      idle_bytes_ -= capacity;
      if (memory.slab != nullptr) --memory.slab->idle;
      return Buffer(this, memory, size);
    }
  }
  return Buffer(this, allocate(capacity), size);
}

std::size_t BufferPool::fresh_bytes(std::size_t size) const {
  const std::size_t capacity = capacity_for(size);
  codec::MutexLock lock(mutex_);
  if (idle_.contains(capacity)) return 0;
  return is_cut(capacity) ? kSlabBytes : capacity;
}

std::size_t BufferPool::idle_bytes() const {
  codec::MutexLock lock(mutex_);
  return idle_bytes_;
}

std::size_t BufferPool::trim(std::size_t keep) {
  std::vector<Memory> unused;  // given back without the lock
  std::size_t given = 0;
  {
    codec::MutexLock lock(mutex_);
    for (auto entry = idle_.begin(); entry != idle_.end() && idle_bytes_ > keep;) {
      std::vector<Memory> staying;
      for (const Memory& memory : entry->second) {
        Buffer::Slab* slab = memory.slab;
        const bool whole = slab == nullptr || (slab->idle == slab->buffers && !slab->leaving);
        if (whole && idle_bytes_ > keep) {
          const std::size_t bytes = memory.capacity * (slab == nullptr ? 1 : slab->buffers);
          idle_bytes_ -= bytes;
          given += bytes;
          unused.push_back(memory);
          if (slab != nullptr) slab->leaving = true;
        } else if (slab == nullptr || !slab->leaving) {
          staying.push_back(memory);
        }
      }
      entry->second = std::move(staying);
      entry = entry->second.empty() ? idle_.erase(entry) : std::next(entry);
    }
  }
  for (const Memory& memory : unused) {
    if (memory.slab != nullptr) {
      munmap(memory.slab->data, kSlabBytes);
      delete memory.slab;
    } else if (memory.capacity > kMaxCut) {
      munmap(memory.data, memory.capacity);
    } else {
      std::free(memory.data);
    }
  }
  return given;
}

void BufferPool::put(const Memory& memory) {
  codec::MutexLock lock(mutex_);
  idle_[memory.capacity].push_back(memory);
  idle_bytes_ += memory.capacity;
  if (memory.slab != nullptr) ++memory.slab->idle;
}

}  // namespace cframefs::fs
