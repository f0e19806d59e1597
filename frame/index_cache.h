// Decoded pieces of the offset indexes of all open frames, under one bound in bytes.
//
// The index of a frame is a chunk itself, 8 bytes for each chunk of the frame; a million chunks make 8 MB. It is never
// expanded whole: its blocks decode on demand and live here, least recently used out first.
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

#include "codec/error.h"

namespace cframefs::frame {

class IndexCache {
 public:
  using Block = std::shared_ptr<const std::vector<std::int64_t>>;

  explicit IndexCache(std::size_t bound_bytes = std::size_t{16} << 20) : bound_(bound_bytes) {}

  /// A number that no other user of this cache has.
  std::uint64_t new_owner();
  /// The block, from the cache or from `load` (called without the lock; two callers may both load).
  codec::Result<Block> get(std::uint64_t owner, std::uint32_t block, const std::function<codec::Result<Block>()>& load);
  /// Forgets the blocks of an owner.
  void forget(std::uint64_t owner);
  std::size_t bytes() const;

 private:
  struct Key {
    std::uint64_t owner;
    std::uint32_t block;
    bool operator==(const Key&) const = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const { return key.owner * 0x9e3779b97f4a7c15U + key.block; }
  };
  struct Entry {
    Key key;
    Block block;
  };

  const std::size_t bound_;
  mutable std::mutex mutex_;
  std::uint64_t next_owner_ = 1;
  std::size_t bytes_ = 0;
  std::list<Entry> recent_;  // most recently used first
  std::unordered_map<Key, std::list<Entry>::iterator, KeyHash> entries_;
};

}  // namespace cframefs::frame
