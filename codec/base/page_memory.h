// Pages of memory. Their size is the kernel's choice: 4 KiB on x86, 4, 16 or 64 KiB on other processors. fault_in()
// populates memory that is about to be written whole with one system call instead of one page fault per page.
//
// Thread safety: functions only. Errors: none; where the system lacks the call, pages are faulted in as they are
// touched.
#pragma once

#include <cstddef>

namespace cframefs::codec {

/// Returns the size of a page of memory and of the kernel's page cache, in bytes: a power of two.
std::size_t page_size();

/// Makes the whole pages of [data, data + size) resident if `size` is 128 KiB to 4 MiB; else does nothing.
void fault_in(void* data, std::size_t size);

}  // namespace cframefs::codec
