// A store of python-blosc2: many frames in one file (.b2z, .b2e), or in a folder with some in a file beside (.b2d).
//
// What a store holds is presented as a tree of files whose bytes are complete frames, so that everything above reads
// them as it reads files: members of the zip where they lie (deflated ones inflated, zip_member.h), those of the embed
// frame through the chunks of that frame. Names are those of files on disk: the key with the suffix of what it is.
// Groups' own metadata are no leaves, but can be asked for by their group. Remote references, which hold no data, are
// left out. Format: stores.md.
//
// Thread safety: immutable but for what was decoded last, which is guarded. Ownership: shares the file it reads from.
// Errors: corruption, unsupported; io passes through.
#pragma once

#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "frame/container.h"
#include "frame/inflated_source.h"
#include "frame/recent_map.h"
#include "frame/zip_directory.h"

namespace cframefs::frame {

class Store {
 public:
  struct Leaf {
    std::uint64_t size = 0;
    std::uint64_t stored = 0;  // bytes of the file that it takes
    bool embedded = false;
    std::uint64_t offset = 0;         // embedded: in the plain bytes of the embed frame
    std::optional<ZipMember> member;  // else
  };

  /// The zip file `source`; none if it is no store. `memory`: for deflated members.
  static Result<std::shared_ptr<const Store>> open_zip(std::shared_ptr<const ByteSource> source,
                                                       std::shared_ptr<InflateMemory> memory);
  /// The embed frame `source` (.b2e, or embed.b2e of a folder).
  static Result<std::shared_ptr<const Store>> open_embed(std::shared_ptr<const ByteSource> source);

  /// `path`: beneath the store, "" for itself.
  bool has_folder(const std::string& path) const { return folders_.contains(path); }
  /// Null if there is none.
  const Leaf* find(const std::string& path) const;
  /// The frame whose variable-length metalayers are the metadata of a folder. Null if it has none.
  const Leaf* metadata_of(const std::string& folder) const;
  /// Names in a folder, and whether each is a folder.
  std::map<std::string, bool> list(const std::string& folder) const;

  /// The bytes of a leaf, to be read as a file. The store must live as long.
  Result<std::unique_ptr<ByteSource>> open(const Leaf& leaf) const;

  /// The name of the frame that holds a group's metadata, less its suffix.
  static constexpr std::string_view kMetadataName = "__vlmeta__";
  /// Names that are never shown: the embed frame itself, groups' metadata, what is being written.
  static bool is_hidden(std::string_view name);

 private:
  friend class EmbeddedSource;

  Result<void> take_embed(std::shared_ptr<const ByteSource> source);
  Result<void> take_entries(const nlohmann::json& map);
  void add(const std::string& path, Leaf leaf);
  void add_folders(const std::string& path);
  Result<std::shared_ptr<const ByteSource>> open_member(const ZipMember& member) const;
  Result<void> read_embedded(std::uint64_t at, ByteSpan into) const;
  Result<void> load_block(std::uint64_t at) const;

  static constexpr std::size_t kKeptMembers = 4;

  std::shared_ptr<const ByteSource> source_;
  std::shared_ptr<InflateMemory> memory_;
  std::shared_ptr<const Container> embed_;  // null if there is none
  std::map<std::string, Leaf> leaves_;
  std::map<std::string, Leaf> metadata_;  // by folder
  std::set<std::string> folders_{""};

  // Deflated members that were opened last, by their place.
  mutable RecentMap<std::uint64_t, std::shared_ptr<const ByteSource>> members_{kKeptMembers};

  // The block of the embed frame that was decoded last, by its place in the plain bytes.
  mutable std::mutex block_mutex_;
  mutable std::uint64_t block_begin_ = 0;
  mutable std::vector<std::uint8_t> block_;
};

}  // namespace cframefs::frame
