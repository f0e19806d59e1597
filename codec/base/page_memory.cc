#include "codec/base/page_memory.h"

#include <bit>
#include <cstdint>

#include <sys/mman.h>

namespace cframefs::codec {
namespace {

constexpr std::uintptr_t kPage = 4096;
constexpr std::size_t kWorthwhile = std::size_t{128} << 10;
// Larger memory may be asked for on the word of a file; it is touched as far as it is really filled.
constexpr std::size_t kMost = std::size_t{4} << 20;

}  // namespace

void fault_in(void* data, std::size_t size) {
  if (size < kWorthwhile || size > kMost) return;
  const auto begin = std::bit_cast<std::uintptr_t>(data);
  const std::uintptr_t first = (begin + kPage - 1) / kPage * kPage;
  const std::uintptr_t last = (begin + size) / kPage * kPage;
  // The call came with Linux 5.14 (here by its number: older headers lack the name); elsewhere it fails and does no
  // harm.
  constexpr int kPopulateWrite = 23;
  madvise(std::bit_cast<void*>(first), last - first, kPopulateWrite);
}

}  // namespace cframefs::codec
