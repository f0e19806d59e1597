// Which leaves and groups a store has, by their paths: one sorted table, in which directories are but what leaves begin
// with.
//
// Paths come from files. Their directories take no memory of their own, for a path of 4 KB has 2,000 of them. The table
// is searched in logarithmic time, and a directory is listed in the time of its own entries, however many others there
// are.
//
// Thread safety: one thread adds; then immutable. Errors: unsupported, from the budget.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "frame/base/parse_budget.h"
#include "frame/store/zip_directory.h"

namespace cframefs::frame {

class StoreIndex {
 public:
  struct Leaf {
    std::uint64_t size = 0;
    std::uint64_t stored = 0;  // bytes of the file that it takes
    std::uint64_t place = 0;   // embedded: in the plain bytes of the embed frame; else of its local header in the zip
    std::uint32_t checksum = 0;
    ZipMethod method = ZipMethod::stored;
    bool encrypted = false;
    bool embedded = false;

   private:
    friend class StoreIndex;
    std::uint64_t name_at = 0;
    std::uint32_t order = 0;
    std::uint16_t name_length = 0;
  };

  /// The name of the frame that holds a group's metadata, less its suffix.
  static constexpr std::string_view kMetadataName = "__vlmeta__";

  /// What lies at `path`, at most 4,096 bytes without NUL, which is a leaf or the metadata of its directory. Of several
  /// at one path that with the lowest `order` stays.
  codec::Result<void> add(std::string_view path, const Leaf& leaf, std::uint32_t order, ParseBudget& budget);
  /// Sorts what was added, which is not seen before.
  void settle();

  std::size_t size() const { return leaves_.size(); }
  /// Bytes that the index takes.
  std::size_t footprint() const { return leaves_.capacity() * sizeof(Leaf) + names_.capacity(); }

  /// Null if there is none.
  const Leaf* find(std::string_view path) const;
  const Leaf* metadata_of(std::string_view directory) const;
  bool has_directory(std::string_view path) const;
  /// Names in a directory, and whether each is a directory.
  std::map<std::string, bool> list(std::string_view directory) const;
  /// Paths and sizes of all leaves.
  std::vector<std::pair<std::string, std::uint64_t>> leaves() const;
  /// Where a leaf lies.
  std::string path_of(const Leaf& leaf) const;

 private:
  std::string_view key_of(const Leaf& leaf) const {
    return std::string_view(names_).substr(leaf.name_at, leaf.name_length);
  }
  using Position = std::vector<Leaf>::const_iterator;
  Position begin() const { return leaves_.begin(); }
  Position end() const { return leaves_.begin() + static_cast<std::ptrdiff_t>(settled_); }
  Position lower_bound(Position from, std::string_view key) const;
  const Leaf* find_key(std::string_view key) const;

  // Paths one after the other, with NUL for '/', so that all beneath a directory lies together and right behind it.
  std::string names_;
  std::vector<Leaf> leaves_;
  std::size_t settled_ = 0;  // so many from the first on are in order
};

}  // namespace cframefs::frame
