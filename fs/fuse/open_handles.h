// The handles that the kernel holds: from open until its release. A session may end without some of the releases, for
// the kernel sends them when it has time; what is left then is dropped with this.
//
//   add() ──▶ open ──take()──▶ (the caller's)
//               │ keep(), take()
//               └──────▶ released, kept ──the last let_go()──▶ (the caller's)
//
// Thread safety: internally synchronised. Ownership: owns the handles; a request that uses one holds the kernel's word
// that it is not released meanwhile, or keep().
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
  /// What the kernel is to hold. If it throws, the handle is still the caller's.
  Handle* add(std::unique_ptr<Handle>&& handle) {
    Handle* held = handle.get();
    codec::MutexLock lock(mutex_);
    auto place = open_.try_emplace(held).first;
    place->second.handle = std::move(handle);
    return held;
  }
  /// Gives it back to the caller; null while it is kept.
  std::unique_ptr<Handle> take(Handle* held) {
    codec::MutexLock lock(mutex_);
    auto found = open_.find(held);
    if (found == open_.end()) return nullptr;
    if (found->second.keepers != 0) {
      found->second.is_released = true;
      return nullptr;
    }
    return std::move(open_.extract(found).mapped().handle);
  }
  /// Keeps the handle beyond its release, for a request that the kernel takes for answered. Any value that is no handle
  /// is left alone.
  void keep(const Handle* held) {
    codec::MutexLock lock(mutex_);
    if (auto found = open_.find(held); found != open_.end()) ++found->second.keepers;
  }
  /// Takes back one keep(). Gives the handle to the caller if it has been released meanwhile, and this was the last.
  std::unique_ptr<Handle> let_go(const Handle* held) {
    codec::MutexLock lock(mutex_);
    auto found = open_.find(held);
    if (found == open_.end() || found->second.keepers == 0) return nullptr;
    if (--found->second.keepers != 0 || !found->second.is_released) return nullptr;
    return std::move(open_.extract(found).mapped().handle);
  }
  /// Calls `look` for each. It must not come back to this object.
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
