// The form of a file that holds one block of one state of an object, in the disk cache.
//
// All integers are little-endian:
//
//    0   8  "cfblock" and NUL
//    8   4  version of the form, 2
//   12   4  length of the body
//   16  32  SHA-256 of the text that names the state
//   48   8  length of that text
//   56   8  number of the block
//   64   8  XXH3 of the digests
//   72   8  XXH3 of bytes 0 to 71
//   80      digests: for each piece of 4 KiB of the body, the last is shorter, its XXH3 of 8 bytes
//           body
//
// So a reader verifies the pieces that it reads, and no others.
//
// Thread safety: pure functions. Ownership: values. Errors: a file whose header differs in any byte holds no block; a
// piece that differs in any byte does not count.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/remote/objects/object_id.h"

namespace cframefs::frame {

inline constexpr std::size_t kDiskPieceBytes = std::size_t{4} << 10;
/// Pieces of a body of RangeStore::kBlockBytes.
inline constexpr std::size_t kMostDiskPieces = (std::size_t{1} << 20) / kDiskPieceBytes;
/// The most that stands before a body.
inline constexpr std::size_t kMostDiskHeader = 80 + 8 * kMostDiskPieces;

/// Names one block of one state of an object.
struct DiskBlockKey {
  Sha256 state{};
  std::uint64_t state_length = 0;
  std::uint64_t block = 0;

  static DiskBlockKey of(const std::string& state, std::uint64_t block);
};

/// Where the file lies, which two digests of its key tell.
struct DiskBlockPlace {
  std::uint64_t high = 0;
  std::uint64_t low = 0;

  bool operator==(const DiskBlockPlace&) const = default;
  /// Returns the number of the sub-directory, 0 to 255.
  unsigned directory() const { return static_cast<unsigned>(high >> 56U); }
  /// Returns the name of the file: 32 hexadecimal digits.
  std::string name() const;

  struct Hash {
    std::size_t operator()(const DiskBlockPlace& place) const { return place.low; }
  };
};

DiskBlockPlace place_of(const DiskBlockKey& key);

/// Returns the name of a sub-directory: two hexadecimal digits.
std::string directory_name(unsigned directory);
/// Returns whether a file of this name may be that of a block.
bool is_block_name(const std::string& name);

/// Returns the bytes before a body of `length` bytes.
std::size_t disk_header_length(std::size_t length);
std::vector<std::uint8_t> header_of(const DiskBlockKey& key, codec::ByteView body);

/// What the header of a file says.
struct DiskBlockHeader {
  std::size_t length = 0;                                // of the body
  std::array<std::uint64_t, kMostDiskPieces> digests{};  // of its pieces
};
/// Returns nullopt unless `first`, the first bytes of a file of `file_length` bytes, are the header of this block,
/// which has at most kMostDiskPieces.
std::optional<DiskBlockHeader> parse_header(codec::ByteView first, std::uint64_t file_length, const DiskBlockKey& key);

}  // namespace cframefs::frame
