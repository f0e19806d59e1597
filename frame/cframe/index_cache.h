// An LRU cache of decoded blocks of the offset indexes of all open frames, with one bound in bytes.
//
// The index of a frame is itself a chunk, with 8 bytes for each chunk of the frame: 8 MB for a million chunks. The
// index is never decoded whole. Its blocks are decoded on demand and cached here.
//
// get() returns a block that is larger than the bound without caching it.
//
// Thread safety: internally synchronised. Ownership: shared by the frames that use it; blocks are shared with readers.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <unordered_map>
#include <vector>

#include "codec/base/error.h"
#include "codec/base/mutex.h"
#include "codec/stream/decode_context.h"

namespace cframefs::frame {

class IndexCache {
 public:
  using Block = std::shared_ptr<const std::vector<std::int64_t>>;

  explicit IndexCache(std::size_t bound_bytes = std::size_t{16} << 20);

  /// Returns a number that identifies one index in this cache.
  std::uint64_t new_owner();
  /// Returns the block from the cache, or calls `load` and caches its result. Errors: those of `load`. No lock is held
  /// during `load`, so two threads may load the same block.
  codec::Result<Block> get(std::uint64_t owner, std::uint32_t block, const std::function<codec::Result<Block>()>& load);
  /// Drops all blocks of an owner.
  void forget(std::uint64_t owner);
  /// Drops all blocks, and the contexts that are not in use. Readers keep the blocks that they hold.
  void clear();
  /// Returns the bytes of the cached blocks, including overhead.
  std::size_t bytes() const;

  /// Contexts for decoding index blocks, shared by all frames.
  codec::ContextPool& contexts() { return contexts_; }

 private:
  struct Key {
    std::uint64_t owner;
    std::uint32_t block;
  };
  struct Entry {
    Key key;
    Block block;
  };
  using Recent = std::list<Entry>;

  void drop(Recent::iterator entry) REQUIRES(mutex_);

  const std::size_t bound_;
  codec::ContextPool contexts_;
  mutable codec::Mutex mutex_;
  std::uint64_t next_owner_ GUARDED_BY(mutex_) = 1;
  std::size_t bytes_ GUARDED_BY(mutex_) = 0;
  Recent recent_ GUARDED_BY(mutex_);  // most recently used first
  // By owner, then block, so that forget() does not visit the blocks of other owners.
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, Recent::iterator>> entries_ GUARDED_BY(mutex_);
};

}  // namespace cframefs::frame
