// How much memory operator new handed out at most, so that a test can say what a file may cost.
//
// Linking memory_meter.cc into a test program replaces the global operator new and delete. What C libraries allocate is
// not counted; limit_address_space() bounds that, too.
//
// Thread safety: all functions may be called at once; the peak is that of all threads.
#pragma once

#include <cstddef>

namespace cframefs::test {

/// Makes the peak what is in use now, and returns that.
std::size_t reset_peak();
/// The most that was in use since reset_peak().
std::size_t peak_bytes();

/// Makes allocations beyond `bytes` of address space fail. False where a sanitizer needs terabytes of it.
bool limit_address_space(std::size_t bytes);

}  // namespace cframefs::test
