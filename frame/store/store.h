// A store of python-blosc2: many frames in one file (.b2z, .b2e), or in the files of a directory and its embed frame
// (.b2d).
//
// A store is presented as a tree of files ("leaves"), each a complete frame, so that other code reads leaves as it
// reads files. Zip members are read in place (deflated members are inflated, zip_member.h), embedded frames through the
// chunks of the embed frame. The name of a leaf is its key with the suffix of its format. A group's metadata is not a
// leaf; metadata_of() returns it. Remote references hold no data and are left out. Format: stores.md.
//
// A stat() may open a store, so ParseBudget::unasked() bounds the cost of opening.
//
// Thread safety: immutable, except for caches, which are guarded. Ownership: shares the file it reads from.
// Errors: corruption; unsupported, also if opening would cost more than the size of the file justifies; io passes
// through.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/base/mutex.h"
#include "frame/base/lru_cache.h"
#include "frame/container/chunk_reader.h"
#include "frame/container/container.h"
#include "frame/store/inflated_source.h"
#include "frame/store/store_index.h"

namespace cframefs::frame {

class Store : public std::enable_shared_from_this<Store> {
 public:
  using Leaf = StoreIndex::Leaf;

  /// Returns true if `source` is the zip file of a store. Keeps nothing in memory.
  static Result<bool> is_store_zip(const ByteSource& source);
  /// Opens the zip file `source`. Returns nullptr if it is not a store. `memory`: for deflated members.
  static Result<std::shared_ptr<const Store>> open_zip(std::shared_ptr<const ByteSource> source,
                                                       std::shared_ptr<InflateMemory> memory);
  /// Opens the embed frame `source` (.b2e, or embed.b2e of a directory).
  static Result<std::shared_ptr<const Store>> open_embed(std::shared_ptr<const ByteSource> source);

  /// `path`: relative to the store, "" for the store itself.
  bool has_directory(const std::string& path) const { return index_.has_directory(path); }
  /// Returns nullptr if `path` is not a leaf.
  const Leaf* find(const std::string& path) const { return index_.find(path); }
  /// Returns the frame whose variable-length metalayers are the metadata of a directory, or nullptr if it has none.
  const Leaf* metadata_of(const std::string& directory) const { return index_.metadata_of(directory); }
  /// Returns the names in a directory, each with true for a directory.
  std::map<std::string, bool> list(const std::string& directory) const { return index_.list(directory); }
  /// Returns paths and sizes of all leaves.
  std::vector<std::pair<std::string, std::uint64_t>> leaves() const { return index_.leaves(); }
  /// Returns the bytes that the store takes in memory, without caches.
  std::size_t footprint() const { return sizeof(Store) + index_.footprint(); }

  /// Opens a leaf.
  Result<std::unique_ptr<ByteSource>> open(const Leaf& leaf) const;

  /// Returns true for names that are never shown: the embed frame, groups' metadata, temporary files.
  static bool is_hidden(std::string_view name);

 private:
  friend class EmbeddedSource;
  struct Entry;

  Result<void> parse_embed(std::shared_ptr<const ByteSource> source, ParseBudget& budget);
  Result<std::vector<Entry>> read_entries(ByteView map, ParseBudget& budget) const;
  Result<void> add_entry(const Entry& entry, ParseBudget& budget);
  Result<bool> is_array(const Entry& entry, ParseBudget& budget) const;
  Result<void> add(const std::string& path, const Leaf& leaf, std::uint32_t order, ParseBudget& budget);
  Result<std::shared_ptr<const ByteSource>> open_member(const ZipMember& member) const;
  Result<void> read_embedded(std::uint64_t at, ByteSpan into, ParseBudget* budget = nullptr) const;
  Result<void> load_block(std::uint64_t at, ParseBudget* budget) const REQUIRES(block_mutex_);
  Result<std::shared_ptr<const ChunkReader>> chunk_reader(ChunkNumber chunk, ParseBudget* budget) const
      REQUIRES(block_mutex_);

  static constexpr std::size_t kKeptMembers = 4;

  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<InflateMemory> memory_;
  std::shared_ptr<const Container> embed_;
  StoreIndex index_;

  // Deflated members that were opened last, by the offset of their local headers.
  mutable LruCache<std::uint64_t, std::shared_ptr<const ByteSource>> members_{kKeptMembers};

  // The block of the embed frame that was decoded last, its offset in the uncompressed bytes, and the reader of its
  // chunk.
  mutable codec::Mutex block_mutex_;
  mutable std::optional<Result<std::shared_ptr<const ChunkReader>>> reader_ GUARDED_BY(block_mutex_);
  mutable ChunkNumber reader_chunk_ GUARDED_BY(block_mutex_);
  mutable std::uint64_t block_begin_ GUARDED_BY(block_mutex_) = 0;
  mutable std::vector<std::uint8_t> block_ GUARDED_BY(block_mutex_);
};

}  // namespace cframefs::frame
