// The leaves of a store by path: one sorted table. A directory is a common prefix of paths.
//
// Paths are untrusted. Directories take no memory of their own, because a path of 4 KB can have 2,000 of them. A lookup
// takes logarithmic time. Listing a directory takes logarithmic time for each of its entries and does not visit the
// leaves of its subdirectories.
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
    std::uint64_t stored = 0;  // bytes that the leaf takes in the store's file
    std::uint64_t place = 0;  // offset in the uncompressed embed frame if embedded, else of the local header in the zip
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

  /// The name, without suffix, of the frame that holds a group's metadata.
  static constexpr std::string_view kMetadataName = "__vlmeta__";

  /// Adds a leaf, or the metadata of a directory. `path`: at most 4,096 bytes, without NUL. Of several leaves with the
  /// same path, settle() keeps the one with the lowest `order`.
  codec::Result<void> add(std::string_view path, const Leaf& leaf, std::uint32_t order, ParseBudget& budget);
  /// Sorts the added leaves, which lookups do not see before.
  void settle();

  std::size_t size() const { return leaves_.size(); }
  /// Returns the bytes that the index takes in memory.
  std::size_t footprint() const { return leaves_.capacity() * sizeof(Leaf) + names_.capacity(); }

  /// These return nullptr if there is no such leaf or metadata.
  const Leaf* find(std::string_view path) const;
  const Leaf* metadata_of(std::string_view directory) const;
  bool has_directory(std::string_view path) const;
  /// Returns the names in a directory, each with true for a directory.
  std::map<std::string, bool> list(std::string_view directory) const;
  /// Returns paths and sizes of all leaves.
  std::vector<std::pair<std::string, std::uint64_t>> leaves() const;
  /// Returns the path of a leaf.
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

  // The paths, concatenated, with NUL for '/'. NUL sorts first, so the leaves of a directory follow each other.
  std::string names_;
  std::vector<Leaf> leaves_;
  std::size_t settled_ = 0;  // number of leading leaves that are sorted
};

}  // namespace cframefs::frame
