// Decoded pieces of the offset indexes of all open frames, under one bound in bytes.
//
// The index of a frame is a chunk itself, 8 bytes for each chunk of the frame; a million chunks make 8 MB. It is never
// expanded whole: its blocks decode on demand and live here, least recently used out first.
//
// A block that is larger than the bound is handed out and not kept.
//
// Fresh memory for a block costs more than decoding into it, so the memory of one block that was dropped is kept for
// the next.
//
// Thread safety: internally synchronised. Ownership: shared by the frames that use it; blocks are shared with readers.
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <vector>

#include "codec/base/error.h"
#include "codec/stream/decode_context.h"

namespace cframefs::frame {

class IndexCache {
 public:
  using Block = std::shared_ptr<const std::vector<std::int64_t>>;

  explicit IndexCache(std::size_t bound_bytes = std::size_t{16} << 20);

  /// A number that no other user of this cache has.
  std::uint64_t new_owner();
  /// The block, from the cache or from `load` (called without the lock; two callers may both load).
  codec::Result<Block> get(std::uint64_t owner, std::uint32_t block, const std::function<codec::Result<Block>()>& load);
  /// Memory for a block, zeros; what is dropped of it last comes back here.
  std::shared_ptr<std::vector<std::int64_t>> new_block(std::size_t entries);
  /// Takes the memory that the first block of a large index will need, so that whoever reads it first need not wait.
  void warm_up();

  /// Forgets the blocks of an owner.
  void forget(std::uint64_t owner);
  /// Bytes held, with what keeping them costs.
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

  /// The memory of one large block that nobody uses.
  struct Spare {
    std::mutex mutex;
    std::vector<std::int64_t> memory;
  };

  void drop(Recent::iterator entry);

  const std::size_t bound_;
  const std::shared_ptr<Spare> spare_;  // shared with the blocks, which may outlive the cache
  codec::ContextPool contexts_;
  mutable std::mutex mutex_;
  std::uint64_t next_owner_ = 1;
  std::size_t bytes_ = 0;
  Recent recent_;  // most recently used first
  // By owner, then block, so that an owner is forgotten without a look at the others.
  std::unordered_map<std::uint64_t, std::unordered_map<std::uint32_t, Recent::iterator>> entries_;
};

}  // namespace cframefs::frame
