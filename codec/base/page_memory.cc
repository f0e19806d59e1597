#include "codec/base/page_memory.h"

#include <bit>
#include <cstdint>

#include <sys/mman.h>
#include <unistd.h>

namespace cframefs::codec {
namespace {

// Below this size the system call costs more than the page faults.
constexpr std::size_t kMinSize = std::size_t{128} << 10;
// Above this size the length may be a claim of a damaged file: only pages that are really written become resident.
constexpr std::size_t kMaxSize = std::size_t{4} << 20;

}  // namespace

std::size_t page_size() {
  return static_cast<std::size_t>(getpagesize());
}

void fault_in(void* data, std::size_t size) {
  if (size < kMinSize || size > kMaxSize) return;
  const auto begin = std::bit_cast<std::uintptr_t>(data);
  const std::uintptr_t page = page_size();
  const std::uintptr_t first = (begin + page - 1) / page * page;
  const std::uintptr_t last = (begin + size) / page * page;
  // MADV_POPULATE_WRITE, since Linux 5.14 (by its number: older headers lack the name). On older kernels the call fails
  // without effect.
  constexpr int kPopulateWrite = 23;
  madvise(std::bit_cast<void*>(first), last - first, kPopulateWrite);
}

}  // namespace cframefs::codec
