// Contexts, of one thread at a time each, handed out to whoever needs one and kept for the next.
//
// Thread safety: the pool may be used by any number of threads; what it hands out belongs to one. Ownership: the pool
// owns idle contexts, a lease the one in use; leases must not outlive their pool. Memory: a context that comes back is
// trimmed, so that one huge block does not stay resident.
#pragma once

#include <cstddef>
#include <memory>
#include <mutex>
#include <new>
#include <utility>
#include <vector>

namespace cframefs::codec {

/// `Context`: default constructible, with trim(keep).
template <class Context>
class ObjectPool {
 public:
  class PooledPtr {
   public:
    PooledPtr(ObjectPool& pool, std::unique_ptr<Context> context) : pool_(&pool), context_(std::move(context)) {}
    PooledPtr(PooledPtr&&) = default;
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

  /// `keep`: scratch bytes per slot that a context may hold while nobody uses it.
  explicit ObjectPool(std::size_t keep = std::size_t{2} << 20) : keep_(keep) {}

  PooledPtr acquire() {
    {
      const std::lock_guard lock(mutex_);
      if (!idle_.empty()) {
        std::unique_ptr<Context> context = std::move(idle_.back());
        idle_.pop_back();
        return {*this, std::move(context)};
      }
    }
    return {*this, std::make_unique<Context>()};
  }

 private:
  void release(std::unique_ptr<Context> context) noexcept {
    try {
      context->trim(keep_);
      const std::lock_guard lock(mutex_);
      idle_.push_back(std::move(context));
    } catch (const std::bad_alloc&) {
      // It is not kept then.
    }
  }

  const std::size_t keep_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<Context>> idle_;
};

}  // namespace cframefs::codec
