#include "codec/base/huge_memory.h"

#include <new>

#include <sys/mman.h>

#include "codec/base/page_memory.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kHugePage = std::size_t{2} << 20;

}  // namespace

HugeMemory::HugeMemory(std::size_t size)
    : size_((size + kHugePage - 1) / kHugePage * kHugePage),
      data_(::operator new (size_, std::align_val_t{kHugePage})) {
  madvise(data(), size_, MADV_HUGEPAGE);
  fault_in(data(), size_);
}

void HugeMemory::Free::operator()(void* data) const {
  ::operator delete (data, std::align_val_t{kHugePage});
}

}  // namespace cframefs::codec
