#include "tests/support/memory_meter.h"

#include <atomic>
#include <cstdlib>
#include <new>

#include <malloc.h>
#include <sys/resource.h>

#include "tests/support/sanitizers.h"

namespace {

std::atomic<std::size_t> in_use{0};
std::atomic<std::size_t> peak{0};

// NOLINTBEGIN(cppcoreguidelines-no-malloc): this is operator new
void* allocate(std::size_t size, std::size_t alignment) {
  void* memory = alignment > alignof(std::max_align_t)
                     ? std::aligned_alloc(alignment, (size + alignment - 1) / alignment * alignment)
                     : std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) return nullptr;
  const std::size_t now = in_use.fetch_add(::malloc_usable_size(memory)) + ::malloc_usable_size(memory);
  std::size_t seen = peak.load();
  while (now > seen && !peak.compare_exchange_weak(seen, now)) {
  }
  return memory;
}

void release(void* memory) {
  if (memory == nullptr) return;
  in_use.fetch_sub(::malloc_usable_size(memory));
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

void* allocate_or_throw(std::size_t size, std::size_t alignment) {
  void* memory = allocate(size, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t size) {
  return allocate_or_throw(size, 0);
}
void* operator new[](std::size_t size) {
  return allocate_or_throw(size, 0);
}
void* operator new(std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new[](std::size_t size, std::align_val_t alignment) {
  return allocate_or_throw(size, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void* operator new[](std::size_t size, const std::nothrow_t&) noexcept {
  return allocate(size, 0);
}
void operator delete(void* memory) noexcept {
  release(memory);
}
void operator delete[](void* memory) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::align_val_t) noexcept {
  release(memory);
}
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}
void operator delete[](void* memory, std::size_t, std::align_val_t) noexcept {
  release(memory);
}

namespace cframefs::test {

std::size_t reset_peak() {
  const std::size_t now = in_use.load();
  peak.store(now);
  return now;
}

std::size_t peak_bytes() {
  return peak.load();
}

bool limit_address_space(std::size_t bytes) {
  if constexpr (kIsSanitized) return false;
  const struct rlimit limit = {bytes, bytes};
  return ::setrlimit(RLIMIT_AS, &limit) == 0;
}

}  // namespace cframefs::test
