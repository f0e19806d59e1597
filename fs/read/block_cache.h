// Decoded bytes of all open frames, least recently used out first, under one bound for the whole mount.
//
// The unit is the cell: neighbouring blocks of one chunk, at least 64 KiB of them where the chunk has that many
// (fs/cells decide how many). A cell is decoded once however many readers meet on it: the first that asks becomes its
// loader and the others wait for what it publishes.
//
//   absent --find()--> loading --publish()--> ready --evicted, or dropped with its snapshot--> absent
//                         \---fail()-------> absent   (those who wait get the error)
//   absent --find_or_bypass()--> glanced at --finish_bypass()--> absent, or loading if somebody waits
//
// A reader at random places wants a few bytes of each cell, and most cells once. To fill a cell then costs twice what
// it takes to decode those bytes alone: the filters of all of it, and memory that was never touched. So the first
// glances at a cell leave it out of the cache; who comes again after that has it filled, for good (`main`).
//
// What is kept, and why. Memory that was never touched costs as much as decoding, and the kernel's page cache keeps
// what programs have read. So this cache does not grow for data that is wanted once:
// - spent: a cell whose every byte has been served; the kernel has it now. A few MiB stay for a reader close behind.
// - ahead: a cell that was decoded ahead and not read yet; at most staging_bytes().
// - probation: a cell of which a part was read, for the first time; a few MiB that stay warm in the processor's cache.
// - main: a cell that was wanted again after it had left probation (its ghost was still remembered). Only these make
//   the cache grow to its bound. So do cells of n-d arrays from the start: a reader of C-order bytes comes back to each
//   of them once for every row that it holds, with all its neighbours in between.
// - large: cells of more than 4 MiB, of which a few would push each other out of probation between two reads of the
//   same one. They share the bound with `main`, and the least recently used cell of both is evicted first. A few MiB of
//   small cells stay whatever large ones need: a cell larger than the bound would else evict everything for nothing.
//
// A sequential reader, or one that jumps about in a file far larger than the cache, so turns the same warm buffers
// over, and what is really reused is not pushed out by either.
//
// Invariants, guarded by the shard's mutex:
//   1. a cell is in one of the five lists if and only if it is ready and no Pin holds it; only such cells are
//      evicted, of each list the least recently used first
//   2. a loading cell is pinned by its loader, so it is never evicted and its memory never moves
//   3. bytes_ counts the capacity of every cell's buffer, from find() to eviction; list_bytes_ that of each list's
//   cells; large_bytes_ that of large cells, pinned or not
// The bound covers cells and the pool's idle buffers together. It is exceeded only by cells that are pinned, which are
// at most one request or one decode-ahead task for each thread, and beside large ones by the small cells that stay.
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

#include <boost/intrusive/list.hpp>
#include <boost/intrusive/set.hpp>
#include <boost/intrusive/unordered_set.hpp>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "fs/util/buffer_pool.h"
#include "fs/util/statistics.h"

namespace cframefs::fs {

struct CacheKey {
  std::uint64_t snapshot = 0;  // which state of which frame; never used again for another
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
    /// REQUIRES: this thread is the loader and has not published yet, or the cell is ready.
    codec::ByteSpan bytes() const;
    /// `count` bytes of the cell go where they will be cached by somebody else.
    void note_served(std::size_t count) const;

   private:
    friend class BlockCache;
    Pin(BlockCache* cache, CacheBlock* cell, bool loads) : cache_(cache), cell_(cell), loads_(loads) {}
    BlockCache* cache_ = nullptr;
    CacheBlock* cell_ = nullptr;
    bool loads_ = false;  // of the loader
  };

  enum class Found : std::uint8_t {
    ready,  // the pin's bytes can be read
    load,   // the caller is the loader: it fills the bytes and then calls publish() or fail(). One that drops the pin
            // instead (an exception) has failed

    busy,  // somebody else is the loader: wait() before reading
    // The cell is wanted for little and not often: the caller decodes what it needs elsewhere, and then calls
    // finish_bypass() or fail(). The pin has no bytes; whoever comes meanwhile finds it busy.
    bypass,
  };
  /// How long a cell that is new is worth keeping.
  enum class Retention : std::uint8_t {
    probation,       // until it proves to be wanted again
    until_consumed,  // as long as there is room, until all its bytes have been served
  };
  struct Lookup {
    Pin pin;
    Found found = Found::ready;
  };

  BlockCache(std::uint64_t bound, BufferPool& pool, Statistics& statistics);
  ~BlockCache();

  /// Memory that was never touched costs as much as decoding into it. `post` is to run a task soon, on another thread:
  /// then one buffer of the size that was asked for last is kept ready, while the bound leaves room. REQUIRES: before
  /// the first find().
  void prepare_with(std::function<void(std::function<void()>)> post) { post_ = std::move(post); }

  Lookup find(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  /// As find(), of a cell that is there or being loaded; an empty pin for any other.
  Lookup find_known(const CacheKey& key);
  /// As find(), for one who wants little of the cell: the first times that is a glance.
  Lookup find_or_bypass(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  /// The glance is over. False: nobody waits, the pin is empty and the cell forgotten. True: others do, and the caller
  /// is now the loader of the cell, with `size` bytes of memory.
  bool finish_bypass(Pin& pin, std::size_t size);
  /// As find(), but answers with an empty pin where the cell is there or being loaded: for decoding ahead.
  Pin find_to_load(const CacheKey& key, std::size_t size, Retention keep = Retention::probation);
  void publish(const Pin& pin);
  void fail(Pin pin, const codec::Error& error);
  /// Waits until the loader is done. On success the pin's bytes can be read.
  codec::Result<void> wait(const Pin& pin);

  /// Forgets all cells of a snapshot: no look-up will ask for one again. REQUIRES: none of them is being loaded.
  void drop(std::uint64_t snapshot);

  std::uint64_t bound() const { return bound_; }
  /// How much may be decoded before it is wanted without being pushed out again.
  std::uint64_t staging_bytes() const;
  /// Bytes of cells that cannot be evicted now.
  std::uint64_t pinned_bytes() const;
  /// Bytes held by cells (idle buffers not counted).
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
  void prepare(std::size_t size);
  /// Whether a cell of the list was there to be evicted. With kProtected and kLarge given, the older one of both.
  bool evict(List list, std::optional<List> other = std::nullopt);
  /// `coming`: bytes of large cells that room is made for.
  bool evict_one(std::uint64_t coming);
  /// Whether large cells alone are evicted: no room is made by what small ones hold.
  bool spares_small_cells(std::uint64_t coming) const;
  void forget_bytes(const CacheBlock& cell);
  void keep_lists_small();
  void unpin(CacheBlock* cell, bool loads);
  std::uint64_t list_bytes(List list) const { return list_bytes_[list].load(std::memory_order_relaxed); }

  const std::uint64_t bound_;
  BufferPool& pool_;
  Statistics& statistics_;
  std::atomic<std::uint64_t> bytes_{0};
  std::atomic<std::uint64_t> large_bytes_{0};
  std::array<std::atomic<std::uint64_t>, kLists> list_bytes_{};
  std::atomic<std::uint32_t> next_victim_shard_{0};
  std::function<void(std::function<void()>)> post_;
  std::atomic<bool> preparing_{false};
  std::array<std::unique_ptr<Shard>, kShards> shards_;
};

}  // namespace cframefs::fs
