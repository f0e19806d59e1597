// The handles that the kernel holds, from open to RELEASE. The kernel sends RELEASE asynchronously, so a session may
// end without some of them; this object then drops the remaining handles.
//
//   add() ──▶ open ──remove()──▶ (the caller's)
//               │ keep(), remove()
//               └──────▶ released, kept ──the last let_go()──▶ (the caller's)
//
// Thread safety: internally synchronised. Ownership: owns the handles. The kernel guarantees no RELEASE while a request
// uses the handle; a request that was answered early calls keep().
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "codec/base/mutex.h"

namespace cframefs::fs {

template <class Handle>
class OpenHandles {
 private:
  struct Open {
    std::unique_ptr<Handle> handle;
    unsigned keepers = 0;
    bool is_released = false;
  };

 public:
  /// Takes ownership and returns the pointer that the kernel holds. If it throws, the caller still owns the handle.
  Handle* add(std::unique_ptr<Handle>&& handle) {
    Handle* held = handle.get();
    codec::MutexLock lock(mutex_);
    auto place = open_.try_emplace(held).first;
    place->second.handle = std::move(handle);
    return held;
  }
  /// Removes the handle and returns it. Returns nullptr if the handle is unknown or kept.
  std::unique_ptr<Handle> remove(Handle* held) {
    codec::MutexLock lock(mutex_);
    auto found = open_.find(held);
    if (found == open_.end()) return nullptr;
    if (found->second.keepers != 0) {
      found->second.is_released = true;
      return nullptr;
    }
    return std::move(open_.extract(found).mapped().handle);
  }
  /// Keeps the handle beyond its RELEASE, for a request that was answered early. Ignores values that are not handles.
  void keep(const Handle* held) {
    codec::MutexLock lock(mutex_);
    if (auto found = open_.find(held); found != open_.end()) ++found->second.keepers;
  }
  /// Undoes one keep(). Returns the handle if the kernel has released it and this was the last keep(), else nullptr.
  std::unique_ptr<Handle> let_go(const Handle* held) {
    codec::MutexLock lock(mutex_);
    auto found = open_.find(held);
    if (found == open_.end() || found->second.keepers == 0) return nullptr;
    if (--found->second.keepers != 0 || !found->second.is_released) return nullptr;
    return std::move(open_.extract(found).mapped().handle);
  }
  /// Calls `look` for each handle. REQUIRES: `look` does not use this object.
  template <class Look>
  void each(Look look) {
    codec::MutexLock lock(mutex_);
    for (const auto& [held, open] : open_)
      look(*open.handle);
  }
  void clear() {
    std::unordered_map<const Handle*, Open> left;  // destroyed without the lock
    {
      codec::MutexLock lock(mutex_);
      left.swap(open_);
    }
  }

 private:
  codec::Mutex mutex_;
  std::unordered_map<const Handle*, Open> open_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
