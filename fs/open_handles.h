// The handles that the kernel holds: from open until its release. A session may end without some of the releases, for
// the kernel sends them when it has time; what is left then is dropped with this.
//
// Thread safety: internally synchronised. Ownership: owns the handles; who uses one holds the kernel's word that it is
// not released meanwhile.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <utility>

#include "codec/mutex.h"

namespace cframefs::fs {

template <class Handle>
class OpenHandles {
 public:
  /// What the kernel is to call it.
  std::uint64_t add(std::unique_ptr<Handle> handle) {
    const auto name = reinterpret_cast<std::uint64_t>(handle.get());
    codec::MutexLock lock(mutex_);
    open_.emplace(name, std::move(handle));
    return name;
  }
  /// Gives it back to the caller.
  std::unique_ptr<Handle> take(std::uint64_t name) {
    codec::MutexLock lock(mutex_);
    auto found = open_.extract(name);
    return found.empty() ? nullptr : std::move(found.mapped());
  }
  void clear() {
    std::unordered_map<std::uint64_t, std::unique_ptr<Handle>> left;  // destroyed without the lock
    {
      codec::MutexLock lock(mutex_);
      left.swap(open_);
    }
  }

 private:
  codec::Mutex mutex_;
  std::unordered_map<std::uint64_t, std::unique_ptr<Handle>> open_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::fs
