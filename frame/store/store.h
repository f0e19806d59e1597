// A store of python-blosc2: many frames in one file (.b2z, .b2e), or in a directory with some in a file beside (.b2d).
//
// What a store holds is presented as a tree of files whose bytes are complete frames, so that everything above reads
// them as it reads files: members of the zip where they lie (deflated ones inflated, zip_member.h), those of the embed
// frame through the chunks of that frame. Names are those of files on disk: the key with the suffix of what it is.
// Groups' own metadata are no leaves, but can be asked for by their group. Remote references, which hold no data, are
// left out. Format: stores.md.
//
// Stores are opened by a mere stat: what that may cost is bounded by ParseBudget::unasked().
//
// Thread safety: immutable but for what was decoded last, which is guarded. Ownership: shares the file it reads from.
// Errors: corruption; unsupported, also
// where opening it would cost more than the size of the file justifies; io passes through.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frame/base/lru_cache.h"
#include "frame/container/chunk_reader.h"
#include "frame/container/container.h"
#include "frame/store/inflated_source.h"
#include "frame/store/store_index.h"

namespace cframefs::frame {

class Store : public std::enable_shared_from_this<Store> {
 public:
  using Leaf = StoreIndex::Leaf;

  /// Whether `source` is the zip file of a store, of whose directory nothing is kept.
  static Result<bool> is_store_zip(const ByteSource& source);
  /// The zip file `source`; none if it is no store. `memory`: for deflated members.
  static Result<std::shared_ptr<const Store>> open_zip(std::shared_ptr<const ByteSource> source,
                                                       std::shared_ptr<InflateMemory> memory);
  /// The embed frame `source` (.b2e, or embed.b2e of a directory).
  static Result<std::shared_ptr<const Store>> open_embed(std::shared_ptr<const ByteSource> source);

  /// `path`: beneath the store, "" for itself.
  bool has_directory(const std::string& path) const { return index_.has_directory(path); }
  /// Null if there is none.
  const Leaf* find(const std::string& path) const { return index_.find(path); }
  /// The frame whose variable-length metalayers are the metadata of a directory. Null if it has none.
  const Leaf* metadata_of(const std::string& directory) const { return index_.metadata_of(directory); }
  /// Names in a directory, and whether each is a directory.
  std::map<std::string, bool> list(const std::string& directory) const { return index_.list(directory); }
  /// Paths and sizes of all leaves.
  std::vector<std::pair<std::string, std::uint64_t>> leaves() const { return index_.leaves(); }
  /// Bytes that it takes as long as nothing of it is read.
  std::size_t footprint() const { return sizeof(Store) + index_.footprint(); }

  /// The bytes of a leaf, to be read as a file.
  Result<std::unique_ptr<ByteSource>> open(const Leaf& leaf) const;

  /// Names that are never shown: the embed frame itself, groups' metadata, what is being written.
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
  Result<void> load_block(std::uint64_t at, ParseBudget* budget) const;
  Result<std::shared_ptr<const ChunkReader>> chunk_reader(ChunkNumber chunk, ParseBudget* budget) const;

  static constexpr std::size_t kKeptMembers = 4;

  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<InflateMemory> memory_;
  std::shared_ptr<const Container> embed_;  // null if there is none
  StoreIndex index_;

  // Deflated members that were opened last, by their place.
  mutable LruCache<std::uint64_t, std::shared_ptr<const ByteSource>> members_{kKeptMembers};

  // The block of the embed frame that was decoded last, by its place in the plain bytes, and its chunk.
  mutable std::mutex block_mutex_;
  mutable std::optional<Result<std::shared_ptr<const ChunkReader>>> reader_;
  mutable ChunkNumber reader_chunk_;
  mutable std::uint64_t block_begin_ = 0;
  mutable std::vector<std::uint8_t> block_;
};

}  // namespace cframefs::frame
