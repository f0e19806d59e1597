// An allocation that fails is ENOMEM for the call that needs it, and ends nothing.
//
// Most of the code lets std::bad_alloc through; it is caught where a request, a task or a commit ends. Thread safety:
// functions only. Errors: kind io with ENOMEM, made without an allocation.
#pragma once

#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "codec/base/error.h"

namespace cframefs::fs {

inline codec::Error no_memory() noexcept {
  return codec::Error{codec::ErrorKind::io, ENOMEM, "out of memory"};  // short enough for the string itself
}

/// Does the work and gives its result; ENOMEM if an allocation fails. `work` returns a codec::Result.
template <class Work>
auto or_no_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return codec::Failure(no_memory());
}

/// Of work that is worth nothing to a caller: false if an allocation fails.
template <class Work>
bool try_in_memory(const Work& work) noexcept {
  try {
    work();
    return true;
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return false;
}

/// Of little work that must be done, and may be done twice: tries until there is memory for it.
template <class Work>
void until_there_is_memory(const Work& work) noexcept {
  while (!try_in_memory(work))
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
}

}  // namespace cframefs::fs
