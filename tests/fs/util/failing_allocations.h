// Makes allocations of the program fail. failing_allocations.cc replaces the program's operator new.
//
// Thread safety: begin and end by one thread; allocations of all threads count.
#pragma once

#include <cstdint>

namespace cframefs::fs {

/// From now on `count` allocations succeed; the `in_a_row` ones that follow fail.
void fail_allocations(std::int64_t count, std::int64_t in_a_row);
/// Ends that. Returns whether an allocation has failed.
bool stop_failing_allocations();

}  // namespace cframefs::fs
