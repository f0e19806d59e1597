// The index of a directory on a server: one object, `.cframefs-index`, that tells the states of all objects below the
// directory, and the bytes of them that a look-up reads. Format: remote.md, section 6.
//
// The bytes come from a server and may be hostile. A parsed index is bounded: 64 MiB as stored, 256 MiB in memory,
// 1,000,000 objects. Left out and counted are objects with a path that leads outside the directory or that no POSIX
// tree can hold ("", ".", "..", NUL, names longer than 255 bytes), and those whose state no tag and no date identifies.
//
// Thread safety: immutable. Ownership: owns its bytes. Errors: unsupported for what is no index, is of a later version
// or exceeds a bound; corruption for an index that contradicts its format.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/base/coordinates.h"
#include "frame/remote/listings/listing.h"

namespace cframefs::frame {

/// The name of the object, in the directory that it describes. No mount shows it.
inline constexpr std::string_view kIndexName = ".cframefs-index";

/// What an index tells of one object.
struct IndexedObject {
  struct Piece {
    std::uint64_t at = 0;
    std::vector<std::uint8_t> bytes;
  };
  std::string path;           // below the directory
  ObjectState state;          // without a version
  std::vector<Piece> pieces;  // in order of their places; no two overlap
};

class RemoteIndex {
 public:
  static constexpr std::uint64_t kMostStoredBytes = std::uint64_t{64} << 20;
  static constexpr std::uint64_t kMostBytes = std::uint64_t{256} << 20;
  static constexpr std::uint64_t kMostObjects = 1'000'000;
  static constexpr std::size_t kMostPathBytes = 4096;
  static constexpr std::uint64_t kMostPieceBytes = std::uint64_t{64} << 10;  // of one object, all pieces together

  static Result<std::shared_ptr<const RemoteIndex>> parse(codec::ByteView stored);

  std::size_t object_count() const { return entries_.size(); }
  /// Returns the number of objects that parse() left out.
  std::size_t left_out() const { return left_out_; }
  /// Returns the entries of a directory, as Listing::list().
  Result<std::vector<ListedEntry>> list(const std::string& directory) const;
  bool has_object(std::string_view path) const;
  bool has_directory(std::string_view path) const;
  /// Fills `into` with bytes of this state of an object; false if the index does not have all of them.
  bool copy(std::string_view path, const ObjectState& state, FileOffset at, codec::ByteSpan into) const;

 private:
  struct Entry {
    std::string_view path;
    ObjectState state;
    const std::uint8_t* pieces = nullptr;
    std::size_t piece_count = 0;
  };

  RemoteIndex() = default;
  Result<void> add_entries(std::uint64_t count);
  std::string_view path_at(std::size_t number) const;
  Entry entry_at(std::size_t number) const;
  std::size_t first_from(std::string_view path) const;

  codec::UninitializedBytes body_;
  std::vector<std::uint32_t> entries_;  // offsets in body_, in order of paths
  std::size_t left_out_ = 0;
};

/// Returns the stored form of an index of these objects. invalid if they exceed a bound of RemoteIndex. `objects`: in
/// any order, each path once.
Result<std::vector<std::uint8_t>> encode_index(std::vector<IndexedObject> objects);

}  // namespace cframefs::frame
