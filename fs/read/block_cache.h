// The cache of decoded bytes of all open frames: evicts the least recently used blocks, under one bound for the mount.
//
// The unit is the cache block, "cell" in the names of code: neighbouring blocks of one chunk, at least 64 KiB where the
// chunk has that many (CacheBlockLayout in fs/read/frame_snapshot.h). A cell is decoded once however many readers want
// it: the first that asks becomes its loader, and the others wait until the loader publishes it.
//
//   absent --find()--> loading --publish()--> ready --evicted, or dropped with its snapshot--> absent
//                         \---fail()-------> absent   (threads that wait get the error)
//   absent --find_or_bypass()--> bypassed --finish_bypass()--> absent, or loading if a thread waits
//
// A random reader wants a few bytes of each cell, and most cells once. Filling a cell then costs twice as much as
// decoding these bytes alone: the filters run over the whole cell, and its memory is touched for the first time. So the
// first few such reads bypass the cache; the next one fills the cell, which then enters the list `protected`.
//
// Lists of cells, and why they exist. The first touch of memory costs as much as decoding, and the kernel's page cache
// keeps what programs have read. So this cache does not grow for data that is read once:
// - consumed: every byte of the cell has been served, so the kernel has it. A few MiB stay for a reader close behind.
// - prefetched: the cell was decoded ahead and has not been read yet; at most staging_bytes().
// - probation: a part of the cell was read, for the first time; a few MiB, which stay in the processor's cache. The
//   list grows when a cell is read again that was evicted from it half read: otherwise many readers in order, each of
//   which reads a cell of its own, would have each cell decoded twice.
// - protected: the cell was wanted again after it had left probation (its ghost was still remembered). Only these cells
//   make the cache grow to its bound. Cells of n-d arrays are protected from the start: a reader in C order returns to
//   each of them once for every row that it holds, and reads all its neighbours in between.
// - large: cells of more than 4 MiB, a few of which would push each other out of probation between two reads of the
//   same one. They share the bound with `protected`, and the least recently used cell of both is evicted first. A few
//   MiB of small cells stay whatever large ones need: otherwise a cell larger than the bound would evict all for
//   nothing.
//
// So a sequential reader, or a random one in a file far larger than the cache, reuses the same warm buffers, and
// neither evicts cells that are really reused.
//
// Invariants, guarded by the shard's mutex:
//   1. a cell is in one of the five lists if and only if it is ready and no Pin holds it; only such cells are
//      evicted, of each list the least recently used first
//   2. a loading cell is pinned by its loader, so it is never evicted and its memory never moves
//   3. bytes_ counts the capacity of every cell's buffer, from find() to eviction; list_bytes_ that of each list's
//      cells; large_bytes_ that of large cells, pinned or not
// The bound covers cells and the pool's idle buffers together. Only pinned cells exceed it, which are those of at most
// one request or one decode-ahead task for each thread, and beside large cells the small ones that stay.
//
// Lock order: one shard at a time, then the pool's. No lock is held while decoding.
// Thread safety: internally synchronised. Ownership: a Pin keeps its cell; Pins must not outlive the cache.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/util/buffer_pool.h"
#include "fs/util/statistics.h"

namespace cframefs::fs {

struct CacheKey {
  std::uint64_t snapshot = 0;  // a version of a frame; the number is never reused
  std::int64_t chunk = 0;
  std::uint32_t cell = 0;
  bool operator==(const CacheKey&) const = default;
};

class BlockCache {
 private:
  struct CacheBlock;
  struct Shard;

 public:
  /// Holds a cell in memory. Movable; dropping it makes the cell evictable.
  class Pin {
   public:
    Pin() = default;
    Pin(Pin&& other) noexcept
        : cache_(other.cache_), cell_(std::exchange(other.cell_, nullptr)), loads_(other.loads_) {}
    Pin& operator=(Pin&& other) noexcept {
      if (this != &other) {
        reset();
        cache_ = other.cache_;
        cell_ = std::exchange(other.cell_, nullptr);
        loads_ = other.loads_;
      }
      return *this;
    }
    ~Pin() { reset(); }
    void reset();
    explicit operator bool() const { return cell_ != nullptr; }
    /// Returns the bytes of the cell. REQUIRES: the cell is ready, or this thread is its loader and has not published
    /// it.
    codec::ByteSpan bytes() const;
    /// Records that `count` bytes of the cell were sent to a program or the kernel, which caches them.
    void note_served(std::size_t count) const;

   private:
    friend class BlockCache;
    Pin(BlockCache* cache, CacheBlock* cell, bool loads) : cache_(cache), cell_(cell), loads_(loads) {}
    BlockCache* cache_ = nullptr;
    CacheBlock* cell_ = nullptr;
    bool loads_ = false;  // this is the loader's pin
  };

  enum class Found : std::uint8_t {
    ready,  // the pin's bytes can be read
    load,   // the caller is the loader: it fills the bytes and then calls publish() or fail(). Dropping the pin instead
            // (an exception) counts as fail()
    busy,   // another thread is the loader: call wait() before reading
    // The caller decodes the few bytes that it needs elsewhere, and then calls finish_bypass() or fail(). The pin has
    // no bytes; other threads find the cell busy until then.
    bypass,
  };
  /// How long to keep a new cell.
  enum class Retention : std::uint8_t {
    probation,       // briefly, unless it is wanted again
    until_consumed,  // while there is room, until all its bytes have been served
  };
  struct Lookup {
    Pin pin;
    Found found = Found::ready;
  };

  BlockCache(std::uint64_t bound, BufferPool& pool, DecodingStatistics& statistics);
  ~BlockCache();

  /// Returns a pin of the cell and what the caller must do with it. `size`: bytes of the cell.
  Lookup find(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  /// As find(), but returns an empty pin for a cell that is neither ready nor loading.
  Lookup find_known(const CacheKey& key);
  /// As find(), for a reader that wants little of the cell: the first few calls return Found::bypass.
  Lookup find_or_bypass(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  /// Ends a bypass. Returns false if no other thread waits: the pin is then empty and the cell absent. Returns true if
  /// others wait: the caller is now the loader of the cell, with `size` bytes of memory.
  bool finish_bypass(Pin& pin, std::size_t size);
  /// As find(), for prefetching: returns an empty pin for a cell that is ready or loading.
  Pin find_to_load(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  /// Makes the bytes visible to the threads that wait. REQUIRES: the caller is the loader.
  void publish(const Pin& pin);
  /// Removes the cell and gives the error to the threads that wait. REQUIRES: the caller is the loader.
  void fail(Pin pin, const codec::Error& error);
  /// Waits until the loader is done. On success the pin's bytes can be read.
  codec::Result<void> wait(const Pin& pin);

  /// Removes all cells of a snapshot, which is never looked up again. REQUIRES: none of them is being loaded.
  void drop(std::uint64_t snapshot);

  std::uint64_t bound() const { return bound_; }
  /// Returns how many bytes may be decoded ahead without being evicted before they are read.
  std::uint64_t staging_bytes() const;
  /// Returns the bytes of cells that cannot be evicted now.
  std::uint64_t pinned_bytes() const;
  /// Returns the bytes held by cells, without idle buffers.
  std::uint64_t bytes() const { return bytes_.load(std::memory_order_relaxed); }

 private:
  static constexpr std::size_t kShards = 16;
  /// The lists of evictable cells.
  enum List : std::uint8_t { kConsumed, kPrefetched, kProbation, kProtected, kLarge, kLists };

  Shard& shard_of(const CacheKey& key) const;
  static List home_of(std::size_t size, Retention keep);
  Lookup insert(Shard& shard, const CacheKey& key, std::size_t size, List home);
  void give_memory(const Pin& pin, std::size_t size);
  void make_room(std::size_t size);
  /// Evicts a cell of the list; with `other` given, the older one of both lists. Returns false if there is none.
  bool evict(List list, std::optional<List> other = std::nullopt);
  /// `coming`: bytes of the large cells for which room is made.
  bool evict_one(std::uint64_t coming);
  /// Returns whether only large cells may be evicted, because small ones hold too little.
  bool spares_small_cells(std::uint64_t coming) const;
  void forget_bytes(const CacheBlock& cell);
  void keep_lists_small();
  /// Makes room in probation for one more cell of this size.
  void widen_probation(std::size_t bytes);
  void unpin(CacheBlock* cell, bool loads);
  std::uint64_t list_bytes(List list) const { return list_bytes_[list].load(std::memory_order_relaxed); }

  const std::uint64_t bound_;
  BufferPool& pool_;
  DecodingStatistics& statistics_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> large_bytes_{0};
  std::array<std::atomic<std::uint64_t>, kLists> list_bytes_{};
  std::atomic<std::uint64_t> probation_bytes_;  // the most that probation holds
  std::atomic<std::uint32_t> next_victim_shard_{0};
  std::array<std::unique_ptr<Shard>, kShards> shards_;
};

}  // namespace cframefs::fs
