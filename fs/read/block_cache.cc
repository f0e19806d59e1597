#include "fs/read/block_cache.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>

#include "fs/util/no_memory.h"

namespace cframefs::fs {

namespace intrusive = boost::intrusive;

struct BlockCache::CacheBlock : intrusive::list_base_hook<>,
                                intrusive::unordered_set_base_hook<>,
                                intrusive::set_base_hook<> {
  enum class State : std::uint8_t { loading, ready, failed, dropped };

  CacheKey key;
  Buffer buffer;
  // Guarded by the shard's mutex.
  std::uint32_t pins = 0;
  State state = State::loading;
  List home = kProbation;  // the list that the cell enters when its last pin is gone
  List list = kLists;      // the list that it is in; kLists: none
  std::optional<codec::Error> error;
  std::uint64_t released = 0;  // the shard's clock when it entered the list

  bool is_large() const;
  std::atomic<std::uint64_t> served{0};  // bytes
};

namespace {

// The sizes of these lists fit into the processor's cache.
constexpr std::uint64_t kConsumedBytes = std::uint64_t{4} << 20;
constexpr std::uint64_t kLeastProbation = std::uint64_t{8} << 20;
constexpr std::size_t kLargeCell = kLeastProbation / 2;
// Probation grows up to this size, or 1/4 of the cache if that is less, for many readers of large cells.
constexpr std::uint64_t kMostProbation = std::uint64_t{128} << 20;
// A reader of at least this share of a cell reads the rest of it soon.
constexpr std::uint64_t kReadShare = 4;
// Small cells up to this size, or 1/8 of the cache if that is less, are not evicted for large ones.
constexpr std::uint64_t kSparedBytes = std::uint64_t{16} << 20;
constexpr std::uint64_t kMaxStagingBytes = std::uint64_t{64} << 20;
// Cells remembered after they have left probation, for each shard.
constexpr std::size_t kGhosts = 4096;
// Bypasses allowed before a cell is cached; by then their cost equals that of one fill.
constexpr std::uint8_t kBypassLimit = 3;

std::size_t hash_key(const CacheKey& key) {
  std::uint64_t mixed = key.snapshot * 0x9e3779b97f4a7c15U;
  mixed ^= (static_cast<std::uint64_t>(key.chunk) + 0x7f4a7c159e3779b9U) * 0xbf58476d1ce4e5b9U;
  mixed ^= (mixed >> 29) + key.cell * 0x94d049bb133111ebU;
  return mixed ^ (mixed >> 32);
}

}  // namespace

bool BlockCache::CacheBlock::is_large() const {
  return buffer.bytes().size() > kLargeCell;
}

struct BlockCache::Shard {
  struct KeyOf {
    using type = CacheKey;
    const CacheKey& operator()(const CacheBlock& cell) const { return cell.key; }
  };
  struct Hash {
    std::size_t operator()(const CacheKey& key) const { return hash_key(key) >> 4; }  // the low bits chose the shard
  };
  using Table = intrusive::unordered_set<CacheBlock, intrusive::key_of_value<KeyOf>, intrusive::hash<Hash>,
                                         intrusive::power_2_buckets<true>>;
  struct SnapshotOf {
    using type = std::uint64_t;
    const std::uint64_t& operator()(const CacheBlock& cell) const { return cell.key.snapshot; }
  };
  using BySnapshot = intrusive::multiset<CacheBlock, intrusive::key_of_value<SnapshotOf>>;

  Shard() : buckets(64), table(Table::bucket_traits(buckets.data(), buckets.size())), ghosts(kGhosts) {}

  void add(CacheBlock& cell) REQUIRES(mutex) {
    if (table.size() >= buckets.size()) {
      std::vector<Table::bucket_type> larger(buckets.size() * 2);
      table.rehash(Table::bucket_traits(larger.data(), larger.size()));
      buckets.swap(larger);
    }
    table.insert(cell);
    by_snapshot.insert(cell);
  }
  /// Removes a cell, so that no look-up finds it.
  void forget(CacheBlock& cell) REQUIRES(mutex) {
    table.erase(table.iterator_to(cell));
    by_snapshot.erase(by_snapshot.iterator_to(cell));
  }

  /// Adds a pin to a cell of the table. Returns whether the cell is ready.
  bool hold(CacheBlock& cell, std::array<std::atomic<std::uint64_t>, kLists>& list_bytes) REQUIRES(mutex) {
    if (cell.pins++ == 0) {
      // A consumed cell that is wanted again counts its served bytes from zero.
      if (cell.list == kConsumed) cell.served.store(0, std::memory_order_relaxed);
      if (cell.list == kPrefetched) cell.home = cell.is_large() ? kLarge : kProbation;
      remove(cell, list_bytes);
    }
    return cell.state == CacheBlock::State::ready;
  }
  void append(CacheBlock& cell, List list, std::array<std::atomic<std::uint64_t>, kLists>& list_bytes) REQUIRES(mutex) {
    cell.list = list;
    cell.released = ++clock;
    lists[list].push_back(cell);
    list_bytes[list].fetch_add(cell.buffer.capacity(), std::memory_order_relaxed);
  }
  void remove(CacheBlock& cell, std::array<std::atomic<std::uint64_t>, kLists>& list_bytes) REQUIRES(mutex) {
    lists[cell.list].erase(lists[cell.list].iterator_to(cell));
    list_bytes[cell.list].fetch_sub(cell.buffer.capacity(), std::memory_order_relaxed);
    cell.list = kLists;
  }
  /// The memory of a cell that is absent.
  struct Ghost {
    std::size_t hash = 0;
    std::uint8_t bypasses = 0;  // kBypassLimit also after the cell has left probation
    bool was_being_read = false;
  };
  /// Removes the ghost of a cell, and returns it.
  Ghost take_ghost(const CacheKey& key) REQUIRES(mutex) {
    Ghost& ghost = ghost_of(key);
    return ghost.hash == hash_key(key) ? std::exchange(ghost, Ghost{}) : Ghost{};
  }
  /// Remembers a cell that leaves probation.
  void leave_ghost(const CacheBlock& cell) REQUIRES(mutex) {
    const bool is_being_read = cell.served.load(std::memory_order_relaxed) >= cell.buffer.bytes().size() / kReadShare;
    ghost_of(cell.key) = Ghost{hash_key(cell.key), kBypassLimit, is_being_read};
  }
  /// Counts a bypass. Returns whether the cell may be bypassed.
  bool note_bypass(const CacheKey& key) REQUIRES(mutex) {
    Ghost& ghost = ghost_of(key);
    if (ghost.hash != hash_key(key)) ghost = Ghost{hash_key(key)};
    if (ghost.bypasses >= kBypassLimit) return false;
    ++ghost.bypasses;
    return true;
  }

  Ghost& ghost_of(const CacheKey& key) REQUIRES(mutex) { return ghosts[hash_key(key) / kShards % kGhosts]; }

  codec::Mutex mutex;
  codec::CondVar loaded;  // a cell of this shard has left the state loading
  std::vector<Table::bucket_type> buckets GUARDED_BY(mutex);
  Table table GUARDED_BY(mutex);
  BySnapshot by_snapshot GUARDED_BY(mutex);                                 // the cells of the table, by snapshot
  std::array<intrusive::list<CacheBlock>, kLists> lists GUARDED_BY(mutex);  // least recently used first
  std::uint64_t clock GUARDED_BY(mutex) = 0;                                // counts the cells that enter a list
  std::vector<Ghost> ghosts GUARDED_BY(mutex);                              // indexed by hash, without probing
};

void BlockCache::Pin::reset() {
  if (cell_ != nullptr) cache_->unpin(std::exchange(cell_, nullptr), loads_);
}

void BlockCache::Pin::note_served(std::size_t count) const {
  cell_->served.fetch_add(count, std::memory_order_relaxed);
}

codec::ByteSpan BlockCache::Pin::bytes() const {
  return cell_->buffer.bytes();
}

BlockCache::BlockCache(std::uint64_t bound, BufferPool& pool, DecodingStatistics& statistics)
    : bound_(bound), pool_(pool), statistics_(statistics), probation_bytes_(kLeastProbation) {
  pool_.on_shortage([this] {
    probation_bytes_ = kLeastProbation;
    while (evict_one(0) || evict(kProtected, kLarge) || evict(kProbation) || evict(kPrefetched)) {
    }
  });
  pool_.bound_idle([this] { return bound_ - std::min(bound_, bytes()); });
  for (auto& shard : shards_)
    shard = std::make_unique<Shard>();
}

BlockCache::~BlockCache() {
  pool_.on_shortage(nullptr);
  pool_.bound_idle(nullptr);
  for (auto& shard : shards_) {
    codec::MutexLock lock(shard->mutex);
    for (auto& list : shard->lists)
      list.clear();
    shard->by_snapshot.clear();
    shard->table.clear_and_dispose([](CacheBlock* cell) { delete cell; });
  }
}

BlockCache::Shard& BlockCache::shard_of(const CacheKey& key) const {
  return *shards_[hash_key(key) % kShards];
}

BlockCache::Lookup BlockCache::find_known(const CacheKey& key) {
  Shard& shard = shard_of(key);
  codec::MutexLock lock(shard.mutex);
  auto found = shard.table.find(key);
  if (found == shard.table.end()) return {};
  return {Pin(this, &*found, false), shard.hold(*found, list_bytes_) ? Found::ready : Found::busy};
}

BlockCache::Lookup BlockCache::find(const CacheKey& key, std::size_t size, Retention keep) {
  if (Lookup known = find_known(key); known.pin) return known;
  return insert(shard_of(key), key, size, home_of(size, keep));
}

BlockCache::Lookup BlockCache::find_or_bypass(const CacheKey& key, std::size_t size, Retention keep) {
  Shard& shard = shard_of(key);
  {
    codec::MutexLock lock(shard.mutex);
    auto found = shard.table.find(key);
    if (found != shard.table.end()) {
      return {Pin(this, &*found, false), shard.hold(*found, list_bytes_) ? Found::ready : Found::busy};
    }
    if (shard.note_bypass(key)) {
      auto fresh = std::make_unique<CacheBlock>();
      fresh->key = key;
      fresh->pins = 1;
      shard.add(*fresh);
      return {Pin(this, fresh.release(), true), Found::bypass};
    }
  }
  return insert(shard, key, size, home_of(size, keep));
}

BlockCache::List BlockCache::home_of(std::size_t size, Retention keep) {
  // A large cell fits into no processor's cache, and would leave probation between two reads of it.
  if (size > kLargeCell) return kLarge;
  return keep == Retention::until_consumed ? kProtected : kProbation;
}

bool BlockCache::finish_bypass(Pin& pin, std::size_t size) {
  Shard& shard = shard_of(pin.cell_->key);
  {
    codec::MutexLock lock(shard.mutex);
    if (pin.cell_->pins == 1) {
      shard.forget(*pin.cell_);
      const std::unique_ptr<CacheBlock> forgotten(std::exchange(pin.cell_, nullptr));
      return false;
    }
  }
  give_memory(pin, size);
  return true;
}

BlockCache::Pin BlockCache::find_to_load(const CacheKey& key, std::size_t size, Retention keep) {
  Shard& shard = shard_of(key);
  {
    codec::MutexLock lock(shard.mutex);
    if (shard.table.find(key) != shard.table.end()) return {};
  }
  Lookup inserted = insert(shard, key, size, keep == Retention::until_consumed ? home_of(size, keep) : kPrefetched);
  return inserted.found == Found::load ? std::move(inserted.pin) : Pin();
}

BlockCache::Lookup BlockCache::insert(Shard& shard, const CacheKey& key, std::size_t size, List home) {
  Pin pin;
  {
    codec::MutexLock lock(shard.mutex);
    auto found = shard.table.find(key);
    if (found != shard.table.end()) {
      return {Pin(this, &*found, false), shard.hold(*found, list_bytes_) ? Found::ready : Found::busy};
    }
    auto fresh = std::make_unique<CacheBlock>();
    fresh->key = key;
    fresh->pins = 1;
    fresh->home = home;
    if (home == kProbation) {
      const Shard::Ghost ghost = shard.take_ghost(key);
      if (ghost.bypasses >= kBypassLimit) fresh->home = kProtected;
      if (ghost.was_being_read) widen_probation(size);
    }
    shard.add(*fresh);
    pin = Pin(this, fresh.release(), true);
  }
  give_memory(pin, size);
  return {std::move(pin), Found::load};
}

void BlockCache::widen_probation(std::size_t bytes) {
  const std::uint64_t most = std::max(kLeastProbation, std::min(bound_ / 4, kMostProbation));
  const std::uint64_t before = probation_bytes_.load(std::memory_order_relaxed);
  // A widening by another thread at the same time may be lost: more follow while they are needed.
  probation_bytes_.store(std::min(before + bytes, most), std::memory_order_relaxed);
}

/// Allocates the memory of a cell that its loader holds. Needs no lock: other threads read it after publish() only.
void BlockCache::give_memory(const Pin& pin, std::size_t size) {
  make_room(size);
  pin.cell_->buffer = pool_.get(size);
  bytes_.fetch_add(pin.cell_->buffer.capacity(), std::memory_order_relaxed);
  if (pin.cell_->is_large()) large_bytes_.fetch_add(pin.cell_->buffer.capacity(), std::memory_order_relaxed);
}

void BlockCache::forget_bytes(const CacheBlock& cell) {
  bytes_.fetch_sub(cell.buffer.capacity(), std::memory_order_relaxed);
  if (cell.is_large()) large_bytes_.fetch_sub(cell.buffer.capacity(), std::memory_order_relaxed);
}

void BlockCache::publish(const Pin& pin) {
  Shard& shard = shard_of(pin.cell_->key);
  {
    codec::MutexLock lock(shard.mutex);
    pin.cell_->state = CacheBlock::State::ready;
  }
  shard.loaded.notify_all();
}

void BlockCache::fail(Pin pin, const codec::Error& error) {
  codec::Error kept = no_memory();
  try_in_memory([&] { kept = error; });
  Shard& shard = shard_of(pin.cell_->key);
  {
    codec::MutexLock lock(shard.mutex);
    // Remove the cell at once, so that the next reader tries again; the last pin frees the memory.
    pin.cell_->state = CacheBlock::State::failed;
    pin.cell_->error = std::move(kept);
    shard.forget(*pin.cell_);
  }
  shard.loaded.notify_all();
}

codec::Result<void> BlockCache::wait(const Pin& pin) {
  Shard& shard = shard_of(pin.cell_->key);
  codec::MutexLock lock(shard.mutex);
  while (pin.cell_->state == CacheBlock::State::loading)
    shard.loaded.wait(shard.mutex);
  if (pin.cell_->state == CacheBlock::State::failed) return codec::Failure(*pin.cell_->error);
  return {};
}

void BlockCache::drop(std::uint64_t snapshot) {
  for (auto& shard : shards_) {
    intrusive::list<CacheBlock> gone;
    {
      codec::MutexLock lock(shard->mutex);
      auto [next, end] = shard->by_snapshot.equal_range(snapshot);
      while (next != end) {
        CacheBlock& cell = *next++;
        if (cell.pins != 0) {
          // A reply is still being sent from the cell: the last pin frees the memory.
          if (cell.state != CacheBlock::State::ready) continue;
          shard->forget(cell);
          cell.state = CacheBlock::State::dropped;
        } else {
          shard->forget(cell);
          shard->remove(cell, list_bytes_);
          gone.push_back(cell);
        }
      }
    }
    gone.clear_and_dispose([this](CacheBlock* cell) {
      forget_bytes(*cell);
      delete cell;
    });
  }
}

void BlockCache::unpin(CacheBlock* cell, bool loads) {
  Shard& shard = shard_of(cell->key);
  std::unique_ptr<CacheBlock> dead;
  {
    codec::MutexLock lock(shard.mutex);
    if (loads && cell->state == CacheBlock::State::loading) {
      cell->state = CacheBlock::State::failed;
      cell->error = no_memory();
      shard.forget(*cell);
      shard.loaded.notify_all();
    }
    if (--cell->pins != 0) return;
    if (cell->state != CacheBlock::State::ready) {
      dead.reset(cell);  // failed or dropped, so it is not in the table
    } else {
      const bool is_consumed = cell->served.load(std::memory_order_relaxed) >= cell->buffer.bytes().size();
      shard.append(*cell, is_consumed ? kConsumed : cell->home, list_bytes_);
    }
  }
  if (dead) forget_bytes(*dead);
  keep_lists_small();
  // Pinned cells may have pushed the cache over its bound.
  if (bytes_.load(std::memory_order_relaxed) > bound_) make_room(0);
}

void BlockCache::make_room(std::size_t size) {
  for (;;) {
    const std::uint64_t fresh = size == 0 ? 0 : pool_.fresh_bytes(size);
    const std::uint64_t idle = pool_.idle_bytes();
    const std::uint64_t total = bytes_.load(std::memory_order_relaxed) + idle + fresh;
    if (total <= bound_) return;
    // An idle buffer that fits is already counted, and will be used.
    const std::uint64_t reusable =
        size != 0 && fresh == 0 ? std::min<std::uint64_t>(BufferPool::capacity_for(size), idle) : 0;
    if (idle > reusable) {
      pool_.trim(idle - std::min(total - bound_, idle - reusable));
    } else if (!evict_one(size > kLargeCell ? size : 0)) {
      return;
    }
  }
}

std::uint64_t BlockCache::pinned_bytes() const {
  std::uint64_t evictable = 0;
  for (const auto& bytes : list_bytes_)
    evictable += bytes.load(std::memory_order_relaxed);
  const std::uint64_t all = bytes_.load(std::memory_order_relaxed);
  return all - std::min(all, evictable);
}

std::uint64_t BlockCache::staging_bytes() const {
  return std::min(bound_ / 2, kMaxStagingBytes);
}

void BlockCache::keep_lists_small() {
  while (list_bytes(kConsumed) > kConsumedBytes && evict(kConsumed)) {
  }
  while (list_bytes(kProbation) > probation_bytes_.load(std::memory_order_relaxed) && evict(kProbation)) {
  }
  while (list_bytes(kPrefetched) > staging_bytes() && evict(kPrefetched)) {
  }
}

bool BlockCache::evict(List list, std::optional<List> other) {
  for (std::size_t tried = 0; tried < kShards; ++tried) {
    Shard& shard = *shards_[next_victim_shard_.fetch_add(1, std::memory_order_relaxed) % kShards];
    std::unique_ptr<CacheBlock> victim;
    {
      codec::MutexLock lock(shard.mutex);
      List from = list;
      if (other && !shard.lists[*other].empty()) {
        const bool is_older =
            shard.lists[list].empty() || shard.lists[*other].front().released < shard.lists[list].front().released;
        if (is_older) from = *other;
      }
      if (shard.lists[from].empty()) continue;
      victim.reset(&shard.lists[from].front());
      shard.remove(*victim, list_bytes_);
      shard.forget(*victim);
      if (from == kProbation) shard.leave_ghost(*victim);
    }
    forget_bytes(*victim);
    statistics_.evictions.fetch_add(1, std::memory_order_relaxed);
    return true;
  }
  return false;
}

bool BlockCache::spares_small_cells(std::uint64_t coming) const {
  const std::uint64_t spared = std::min(bound_ / 8, kSparedBytes);
  const bool is_little = list_bytes(kProtected) + list_bytes(kProbation) <= spared;
  return is_little && large_bytes_.load(std::memory_order_relaxed) + coming + spared > bound_;
}

bool BlockCache::evict_one(std::uint64_t coming) {
  if (evict(kConsumed)) return true;
  if (spares_small_cells(coming)) return evict(kLarge);
  return evict(kProtected, kLarge) || evict(kProbation);
}

}  // namespace cframefs::fs
