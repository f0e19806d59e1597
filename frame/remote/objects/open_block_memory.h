// Memory for the open blocks of a disk cache: one piece that is resident from the beginning. Objects in the heap of a
// thread would each take new pages, and their page faults more time than all else that opens a block.
//
// Thread safety: internally synchronised. Ownership: owns the piece; what is allocated must go before it. What exceeds
// the piece comes from the heap. Errors: std::bad_alloc.
#pragma once

#include <cstddef>
#include <memory_resource>

#include "codec/base/huge_memory.h"

namespace cframefs::frame {

class OpenBlockMemory {
 public:
  /// `blocks`: how many are usually open at a time.
  explicit OpenBlockMemory(std::size_t blocks);

  std::pmr::memory_resource& resource() { return pool_; }

 private:
  const codec::HugeMemory piece_;
  std::pmr::monotonic_buffer_resource unused_;
  std::pmr::synchronized_pool_resource pool_;
};

}  // namespace cframefs::frame
