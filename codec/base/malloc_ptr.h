// Ownership of memory that a function in C has allocated with malloc() or calloc() and that its caller has to free.
//
// Thread safety: that of std::unique_ptr. Ownership: a MallocPtr frees its memory. Errors: none.
#pragma once

#include <cstdlib>
#include <memory>

namespace cframefs::codec {

struct FreeMemory {
  // NOLINTNEXTLINE(cppcoreguidelines-no-malloc): such memory has no other way back
  void operator()(void* memory) const noexcept { std::free(memory); }
};

template <class Object>
using MallocPtr = std::unique_ptr<Object, FreeMemory>;

}  // namespace cframefs::codec
