#include "frame/cframe/index_cache.h"

#include <utility>

#include "codec/base/page_memory.h"

namespace cframefs::frame {

namespace {

/// Memory of blocks of kMinSpare to kMaxSpare entries is kept for reuse. C-Blosc2's indexes of a million chunks have
/// blocks of 64 Ki entries.
constexpr std::size_t kMinSpare = std::size_t{16} << 10;
constexpr std::size_t kMaxSpare = std::size_t{128} << 10;
constexpr std::size_t kUsual = std::size_t{64} << 10;

/// Approximate bytes of list node, map node and vector for one block.
constexpr std::size_t kOverhead = 192;

std::size_t charge(const IndexCache::Block& block) {
  return block->size() * sizeof(std::int64_t) + kOverhead;
}

}  // namespace

IndexCache::IndexCache(std::size_t bound_bytes) : bound_(bound_bytes), spare_(std::make_shared<Spare>()) {}

std::shared_ptr<std::vector<std::int64_t>> IndexCache::new_block(std::size_t entries) {
  std::vector<std::int64_t> memory;
  if (entries >= kMinSpare) {
    const std::lock_guard lock(spare_->mutex);
    // A capacity above twice the entries is not used, because the bound counts the entries of a block, not its
    // capacity.
    const std::size_t capacity = spare_->memory.capacity();
    if (capacity >= entries && capacity <= 2 * entries) memory = std::move(spare_->memory);
  }
  if (memory.capacity() < entries) {
    memory.reserve(entries);
    codec::fault_in(memory.data(), entries * sizeof(std::int64_t));
  }
  memory.assign(entries, 0);
  if (entries < kMinSpare || entries > kMaxSpare) return std::make_shared<std::vector<std::int64_t>>(std::move(memory));
  const auto give_back = [spare = spare_](std::vector<std::int64_t>* block) {
    const std::unique_ptr<std::vector<std::int64_t>> dropped(block);
    const std::lock_guard lock(spare->mutex);
    if (spare->memory.capacity() == 0) spare->memory = std::move(*dropped);
  };
  return {new std::vector<std::int64_t>(std::move(memory)), give_back};
}

void IndexCache::warm_up() {
  const auto context = contexts_.acquire();
  for (const auto slot : {codec::DecodeContext::Slot::stored, codec::DecodeContext::Slot::streams})
    context->scratch(slot, kUsual * sizeof(std::int64_t));
  new_block(kUsual);
}

std::uint64_t IndexCache::new_owner() {
  const std::lock_guard lock(mutex_);
  return next_owner_++;
}

codec::Result<IndexCache::Block> IndexCache::get(std::uint64_t owner, std::uint32_t block,
                                                 const std::function<codec::Result<Block>()>& load) {
  {
    const std::lock_guard lock(mutex_);
    if (const auto blocks = entries_.find(owner); blocks != entries_.end()) {
      if (const auto found = blocks->second.find(block); found != blocks->second.end()) {
        recent_.splice(recent_.begin(), recent_, found->second);
        return found->second->block;
      }
    }
  }
  auto loaded = load();
  if (!loaded || charge(*loaded) > bound_) return loaded;
  const std::lock_guard lock(mutex_);
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
  const std::lock_guard lock(mutex_);
  const auto blocks = entries_.find(owner);
  if (blocks == entries_.end()) return;
  for (const auto& [block, entry] : blocks->second) {
    bytes_ -= charge(entry->block);
    recent_.erase(entry);
  }
  entries_.erase(blocks);
}

std::size_t IndexCache::bytes() const {
  const std::lock_guard lock(mutex_);
  return bytes_;
}

}  // namespace cframefs::frame
