#include "frame/cframe/index_cache.h"

#include <utility>

namespace cframefs::frame {
namespace {

/// Approximate bytes of list node, map node and vector for one block.
constexpr std::size_t kOverhead = 192;

std::size_t charge(const IndexCache::Block& block) {
  return block->size() * sizeof(std::int64_t) + kOverhead;
}

}  // namespace

IndexCache::IndexCache(std::size_t bound_bytes) : bound_(bound_bytes) {}

std::uint64_t IndexCache::new_owner() {
  const codec::MutexLock lock(mutex_);
  return next_owner_++;
}

codec::Result<IndexCache::Block> IndexCache::get(std::uint64_t owner, std::uint32_t block,
                                                 const std::function<codec::Result<Block>()>& load) {
  {
    const codec::MutexLock lock(mutex_);
    if (const auto blocks = entries_.find(owner); blocks != entries_.end()) {
      if (const auto found = blocks->second.find(block); found != blocks->second.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return found->second->block;
      }
    }
  }
  auto loaded = load();
  if (!loaded || charge(*loaded) > bound_) return loaded;
  const codec::MutexLock lock(mutex_);
  auto& blocks = entries_[owner];
  if (blocks.contains(block)) return loaded;
  recent_.push_front(Entry{Key{owner, block}, *loaded});
  blocks.emplace(block, recent_.begin());
  bytes_ += charge(*loaded);
  while (bytes_ > bound_)
    drop(std::prev(recent_.end()));
  return loaded;
}

void IndexCache::drop(Recent::iterator entry) {
  bytes_ -= charge(entry->block);
  const auto blocks = entries_.find(entry->key.owner);
  blocks->second.erase(entry->key.block);
  if (blocks->second.empty()) entries_.erase(blocks);
  recent_.erase(entry);
}

void IndexCache::forget(std::uint64_t owner) {
  const codec::MutexLock lock(mutex_);
  const auto blocks = entries_.find(owner);
  if (blocks == entries_.end()) return;
  for (const auto& [block, entry] : blocks->second) {
    bytes_ -= charge(entry->block);
    recent_.erase(entry);
  }
  entries_.erase(blocks);
}

void IndexCache::clear() {
  contexts_.clear();
  Recent gone;  // destroyed without the lock
  const codec::MutexLock lock(mutex_);
  gone.swap(recent_);
  entries_.clear();
  bytes_ = 0;
}

std::size_t IndexCache::bytes() const {
  const codec::MutexLock lock(mutex_);
  return bytes_;
}

}  // namespace cframefs::frame
