// A pool of contexts that serve one thread at a time each and are reused.
//
// Thread safety: any number of threads may use the pool; an acquired context belongs to one thread. Ownership: the pool
// owns idle contexts, a PooledPtr the one in use; a PooledPtr must not outlive its pool. Memory: a returned context is
// trimmed, so that one huge block does not stay resident.
#pragma once

#include <cstddef>
#include <memory>
#include <new>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"

namespace cframefs::codec {

/// `Context`: default constructible, with a member trim(keep).
template <class Context>
class ObjectPool {
 public:
  class PooledPtr {
   public:
    PooledPtr(ObjectPool& pool, std::unique_ptr<Context> context) : pool_(&pool), context_(std::move(context)) {}
    PooledPtr(PooledPtr&&) noexcept = default;
    PooledPtr& operator=(PooledPtr&&) = delete;
    ~PooledPtr() {
      if (context_) pool_->release(std::move(context_));
    }
    Context& operator*() const { return *context_; }
    Context* operator->() const { return context_.get(); }

   private:
    ObjectPool* pool_;
    std::unique_ptr<Context> context_;
  };

  /// `keep`: scratch bytes per slot that an idle context may hold.
  explicit ObjectPool(std::size_t keep = std::size_t{2} << 20) : keep_(keep) {}

  PooledPtr acquire() {
    {
      const MutexLock lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Context> context = std::move(idle_.back());
        idle_.pop_back();
        return {*this, std::move(context)};
      }
    }
    return {*this, std::make_unique<Context>()};
  }
  /// Destroys the contexts that are not in use.
  void clear() {
    std::vector<std::unique_ptr<Context>> gone;  // destroyed without the lock
    const MutexLock lock(mutex_);
    gone.swap(idle_);
  }

 private:
  void release(std::unique_ptr<Context> context) noexcept {
    try {
      context->trim(keep_);
      const MutexLock lock(mutex_);
      idle_.push_back(std::move(context));
    } catch (const std::bad_alloc&) {
      // Out of memory: the context is destroyed instead of kept.
    }
  }

  const std::size_t keep_;
  Mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::codec
