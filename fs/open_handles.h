// The handles that the kernel holds: from open until its release. A session may end without some of the releases, for
// the kernel sends them when it has time; what is left then is dropped with this.
//
// Thread safety: internally synchronised. Ownership: owns the handles; who uses one holds the kernel's word that it is
// not released meanwhile.
#pragma once

#include <memory>
#include <unordered_map>
#include <utility>

#include "codec/mutex.h"

namespace cframefs::fs {

template <class Handle>
class OpenHandles {
 public:
  /// What the kernel is to hold. If it throws, the handle is still the caller's.
  Handle* add(std::unique_ptr<Handle>&& handle) {
    Handle* held = handle.get();
    codec::MutexLock lock(mutex_);
    auto place = open_.try_emplace(held, nullptr).first;
    place->second = std::move(handle);
    return held;
  }
  /// Gives it back to the caller.
  std::unique_ptr<Handle> take(Handle* held) {
    codec::MutexLock lock(mutex_);
    auto found = open_.extract(held);
    return found.empty() ? nullptr : std::move(found.mapped());
  }
  /// Calls `look` for each. It must not come back to this object.
  template <class Look>
  void each(Look look) {
    codec::MutexLock lock(mutex_);
    for (const auto& [held, handle] : open_)
      look(*held);
  }
  void clear() {
    std::unordered_map<Handle*, std::unique_ptr<Handle>> left;  // destroyed without the lock
    {
      codec::MutexLock lock(mutex_);
      left.swap(open_);
    }
  }

 private:
  codec::Mutex mutex_;
  std::unordered_map<Handle*, std::unique_ptr<Handle>> open_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
