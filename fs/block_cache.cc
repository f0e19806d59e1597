#include "fs/block_cache.h"

#include <algorithm>
#include <utility>

namespace cframefs::fs {

namespace intrusive = boost::intrusive;

struct BlockCache::Cell : intrusive::list_base_hook<>, intrusive::unordered_set_base_hook<> {
  enum class State : std::uint8_t { loading, ready, failed };

  CellKey key;
  Buffer buffer;
  // Guarded by the shard's mutex.
  std::uint32_t pins = 0;
  State state = State::loading;
  bool is_spent = false;  // in the list of spent cells
  std::optional<codec::Error> error;

  std::atomic<std::uint64_t> served{0};  // bytes
};

namespace {

// Spent cells that are kept for a reader who comes right after; small enough for the processor's own cache.
constexpr std::uint64_t kSpentBytes = std::uint64_t{4} << 20;

std::size_t hash_key(const CellKey& key) {
  std::uint64_t mixed = key.generation * 0x9e3779b97f4a7c15U;
  mixed ^= (static_cast<std::uint64_t>(key.chunk) + 0x7f4a7c159e3779b9U) * 0xbf58476d1ce4e5b9U;
  mixed ^= (mixed >> 29) + key.cell * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 32);
}

}  // namespace

struct BlockCache::Shard {
  struct KeyOf {
    using type = CellKey;
    const CellKey& operator()(const Cell& cell) const { return cell.key; }
  };
  struct Hash {
    std::size_t operator()(const CellKey& key) const { return hash_key(key) >> 4; }  // the low bits chose the shard
  };
  using Table = intrusive::unordered_set<Cell, intrusive::key_of_value<KeyOf>, intrusive::hash<Hash>,
                                         intrusive::power_2_buckets<true>>;

  Shard() : buckets(64), table(Table::bucket_traits(buckets.data(), buckets.size())) {}

  void add(Cell& cell) REQUIRES(mutex) {
    if (table.size() >= buckets.size()) {
      std::vector<Table::bucket_type> larger(buckets.size() * 2);
      table.rehash(Table::bucket_traits(larger.data(), larger.size()));
      buckets.swap(larger);
    }
    table.insert(cell);
  }

  /// Adds a pin to a cell of the table. True if its bytes are there.
  bool hold(Cell& cell, std::atomic<std::uint64_t>& spent_bytes) REQUIRES(mutex) {
    if (cell.pins++ == 0) {
      if (cell.is_spent) {
        // Wanted again after all: it starts anew as an ordinary cell.
        spent.erase(spent.iterator_to(cell));
        spent_bytes.fetch_sub(cell.buffer.capacity(), std::memory_order_relaxed);
        cell.is_spent = false;
        cell.served.store(0, std::memory_order_relaxed);
      } else {
        recent.erase(recent.iterator_to(cell));
      }
    }
    return cell.state == Cell::State::ready;
  }

  codec::Mutex mutex;
  codec::Condition loaded;  // some cell of this shard left the state loading
  std::vector<Table::bucket_type> buckets GUARDED_BY(mutex);
  Table table GUARDED_BY(mutex);
  intrusive::list<Cell> recent GUARDED_BY(mutex);  // evictable cells, least recently used first
  intrusive::list<Cell> spent GUARDED_BY(mutex);   // evictable cells that were served whole, oldest first
};

void BlockCache::Pin::reset() {
  if (cell_ != nullptr) cache_->unpin(std::exchange(cell_, nullptr));
}

void BlockCache::Pin::note_served(std::size_t count) const {
  cell_->served.fetch_add(count, std::memory_order_relaxed);
}

codec::ByteSpan BlockCache::Pin::bytes() const {
  return cell_->buffer.bytes();
}

BlockCache::BlockCache(std::uint64_t bound, BufferPool& pool, Statistics& statistics)
    : bound_(bound), pool_(pool), statistics_(statistics) {
  for (auto& shard : shards_)
    shard = std::make_unique<Shard>();
}

BlockCache::~BlockCache() {
  for (auto& shard : shards_) {
    codec::MutexLock lock(shard->mutex);
    shard->recent.clear();
    shard->spent.clear();
    shard->table.clear_and_dispose([](Cell* cell) { delete cell; });
  }
}

BlockCache::Shard& BlockCache::shard_of(const CellKey& key) const {
  return *shards_[hash_key(key) % kShards];
}

BlockCache::Lookup BlockCache::find(const CellKey& key, std::size_t size) {
  Shard& shard = shard_of(key);
  {
    codec::MutexLock lock(shard.mutex);
    auto found = shard.table.find(key);
    if (found != shard.table.end()) {
      return {Pin(this, &*found), shard.hold(*found, spent_bytes_) ? Found::ready : Found::busy};
    }
  }
  return insert(shard, key, size);
}

BlockCache::Pin BlockCache::find_to_load(const CellKey& key, std::size_t size) {
  Shard& shard = shard_of(key);
  {
    codec::MutexLock lock(shard.mutex);
    if (shard.table.find(key) != shard.table.end()) return {};
  }
  Lookup inserted = insert(shard, key, size);
  return inserted.found == Found::load ? std::move(inserted.pin) : Pin();
}

BlockCache::Lookup BlockCache::insert(Shard& shard, const CellKey& key, std::size_t size) {
  // Memory is found without the lock; another thread may insert the cell meanwhile, then ours goes back to the pool.
  make_room(size);
  auto fresh = std::make_unique<Cell>();
  fresh->key = key;
  fresh->buffer = pool_.get(size);
  fresh->pins = 1;

  codec::MutexLock lock(shard.mutex);
  auto found = shard.table.find(key);
  if (found != shard.table.end()) {
    return {Pin(this, &*found), shard.hold(*found, spent_bytes_) ? Found::ready : Found::busy};
  }
  bytes_.fetch_add(fresh->buffer.capacity(), std::memory_order_relaxed);
  Cell* cell = fresh.release();
  shard.add(*cell);
  return {Pin(this, cell), Found::load};
}

void BlockCache::publish(const Pin& pin) {
  Shard& shard = shard_of(pin.cell_->key);
  {
    codec::MutexLock lock(shard.mutex);
    pin.cell_->state = Cell::State::ready;
  }
  shard.loaded.notify_all();
}

void BlockCache::fail(Pin pin, const codec::Error& error) {
  Shard& shard = shard_of(pin.cell_->key);
  {
    codec::MutexLock lock(shard.mutex);
    // Out of the table at once, so that the next reader tries again; the last pin frees the memory.
    pin.cell_->state = Cell::State::failed;
    pin.cell_->error = error;
    shard.table.erase(shard.table.iterator_to(*pin.cell_));
  }
  shard.loaded.notify_all();
}

codec::Result<void> BlockCache::wait(const Pin& pin) {
  Shard& shard = shard_of(pin.cell_->key);
  codec::MutexLock lock(shard.mutex);
  while (pin.cell_->state == Cell::State::loading)
    shard.loaded.wait(shard.mutex);
  if (pin.cell_->state == Cell::State::failed) return codec::Failure(*pin.cell_->error);
  return {};
}

void BlockCache::unpin(Cell* cell) {
  Shard& shard = shard_of(cell->key);
  std::unique_ptr<Cell> dead;
  {
    codec::MutexLock lock(shard.mutex);
    if (--cell->pins != 0) return;
    if (cell->state != Cell::State::ready) {
      dead.reset(cell);  // failed, and already out of the table
    } else if (cell->served.load(std::memory_order_relaxed) >= cell->buffer.bytes().size()) {
      cell->is_spent = true;
      shard.spent.push_back(*cell);
      spent_bytes_.fetch_add(cell->buffer.capacity(), std::memory_order_relaxed);
    } else {
      shard.recent.push_back(*cell);
    }
  }
  if (dead) bytes_.fetch_sub(dead->buffer.capacity(), std::memory_order_relaxed);
  while (spent_bytes_.load(std::memory_order_relaxed) > kSpentBytes && evict_spent()) {
  }
  // Pinned cells may have pushed the cache over its bound.
  if (bytes_.load(std::memory_order_relaxed) > bound_) make_room(0);
}

void BlockCache::make_room(std::size_t size) {
  for (;;) {
    const std::uint64_t fresh = size == 0 ? 0 : pool_.fresh_bytes(size);
    const std::uint64_t idle = pool_.idle_bytes();
    const std::uint64_t total = bytes_.load(std::memory_order_relaxed) + idle + fresh;
    // Taking what lies idle costs nothing; memory in slabs comes and goes in steps of one.
    if (total <= (fresh != 0 ? bound_ : bound_ + BufferPool::kSlabBytes)) return;
    const std::uint64_t surplus = total - bound_;
    if (pool_.trim(surplus < idle ? idle - surplus : 0) == 0 && !evict_one()) return;
  }
}

void BlockCache::dispose(std::unique_ptr<Cell> victim) {
  bytes_.fetch_sub(victim->buffer.capacity(), std::memory_order_relaxed);
  statistics_.evictions.fetch_add(1, std::memory_order_relaxed);
}

bool BlockCache::evict_spent() {
  for (std::size_t tried = 0; tried < kShards; ++tried) {
    Shard& shard = *shards_[next_victim_shard_.fetch_add(1, std::memory_order_relaxed) % kShards];
    std::unique_ptr<Cell> victim;
    {
      codec::MutexLock lock(shard.mutex);
      if (shard.spent.empty()) continue;
      victim.reset(&shard.spent.front());
      shard.spent.pop_front();
      shard.table.erase(shard.table.iterator_to(*victim));
      spent_bytes_.fetch_sub(victim->buffer.capacity(), std::memory_order_relaxed);
    }
    dispose(std::move(victim));
    return true;
  }
  return false;
}

bool BlockCache::evict_one() {
  if (evict_spent()) return true;
  for (std::size_t tried = 0; tried < kShards; ++tried) {
    Shard& shard = *shards_[next_victim_shard_.fetch_add(1, std::memory_order_relaxed) % kShards];
    std::unique_ptr<Cell> victim;
    {
      codec::MutexLock lock(shard.mutex);
      if (shard.recent.empty()) continue;
      victim.reset(&shard.recent.front());
      shard.recent.pop_front();
      shard.table.erase(shard.table.iterator_to(*victim));
    }
    dispose(std::move(victim));
    return true;
  }
  return false;
}

}  // namespace cframefs::fs
