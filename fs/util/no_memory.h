// Turns a failed allocation into ENOMEM for the request that needs it; the daemon keeps running.
//
// Most of the code lets std::bad_alloc propagate to the end of a request, a task or a commit, which catches it here.
// Thread safety: functions without state. Errors: kind io with ENOMEM, made without an allocation.
#pragma once

#include <cerrno>
#include <chrono>
#include <new>
#include <stdexcept>
#include <thread>

#include "codec/base/error.h"

namespace cframefs::fs {

inline codec::Error no_memory() noexcept {
  return codec::Error{codec::ErrorKind::io, ENOMEM, "out of memory"};  // fits into std::string without an allocation
}

/// Returns the result of `work`; ENOMEM if an allocation fails. `work` returns a codec::Result.
template <class Work>
auto or_no_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
  } catch (const std::length_error&) {
  }
  return codec::Failure(no_memory());
}

/// Runs work that the caller can do without. Returns false if an allocation fails.
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

/// Pause between two attempts of work that lacked memory.
inline constexpr std::chrono::milliseconds kMemoryPause{10};

/// Runs `work` until no allocation fails, with pauses of kMemoryPause. For short work that may run twice.
template <class Work>
void until_there_is_memory(const Work& work) noexcept {
  while (!try_in_memory(work))
    std::this_thread::sleep_for(kMemoryPause);
}

/// As until_there_is_memory(), for work that may be left undone: gives up after about a second, and returns false.
template <class Work>
bool try_for_a_second(const Work& work) noexcept {
  for (int left = std::chrono::seconds(1) / kMemoryPause;; --left) {
    if (try_in_memory(work)) return true;
    if (left == 0) return false;
    std::this_thread::sleep_for(kMemoryPause);
  }
}

}  // namespace cframefs::fs
