#include "tests/fs/util/failing_allocations.h"

#include <atomic>
#include <cstdlib>
#include <limits>
#include <new>

namespace {

constexpr std::int64_t kNoneFails = std::numeric_limits<std::int64_t>::max();
// How many allocations succeed before some fail; -n after n failures. kNoneFails: not counted.
std::atomic<std::int64_t> allocations_left{kNoneFails};
std::atomic<std::int64_t> failures_in_a_row{1};

bool is_to_fail() {
  if (allocations_left.load(std::memory_order_relaxed) == kNoneFails) return false;
  const std::int64_t left = allocations_left.fetch_sub(1);
  return left <= 0 && left > -failures_in_a_row;
}

}  // namespace

// NOLINTBEGIN(cppcoreguidelines-no-malloc): this is operator new
void* operator new(std::size_t size) {
  if (is_to_fail()) throw std::bad_alloc();
  if (void* memory = std::malloc(size == 0 ? 1 : size)) return memory;
  throw std::bad_alloc();
}
// std::stable_sort uses this one, and sorts in place if it fails.
void* operator new(std::size_t size, const std::nothrow_t& /*tag*/) noexcept {
  return is_to_fail() ? nullptr : std::malloc(size == 0 ? 1 : size);
}
void operator delete(void* memory, const std::nothrow_t& /*tag*/) noexcept {
  std::free(memory);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t /*size*/) noexcept {
  std::free(memory);
}
// NOLINTEND(cppcoreguidelines-no-malloc)

namespace cframefs::fs {

void fail_allocations(std::int64_t count, std::int64_t in_a_row) {
  failures_in_a_row = in_a_row;
  allocations_left = count;
}

bool stop_failing_allocations() {
  return allocations_left.exchange(kNoneFails) < 0;
}

}  // namespace cframefs::fs
