// The form of a file that holds one block of one state of an object, in the disk cache.
//
// All integers are little-endian:
//
//    0   8  "cfblock" and NUL
//    8   4  version of the form, 1
//   12   4  length of the body
//   16  32  SHA-256 of the text that names the state
//   48   8  length of that text
//   56   8  number of the block
//   64   8  XXH3 of the body
//   72   8  XXH3 of bytes 0 to 71
//   80      body
//
// Thread safety: pure functions. Ownership: values. Errors: a file that differs in any byte holds no block.
#pragma once

#include <array>
#include <cstdint>
#include <string>

#include "codec/base/bytes.h"
#include "frame/remote/objects/object_id.h"

namespace cframefs::frame {

constexpr std::size_t kDiskBlockHeader = 80;
using DiskBlockHeader = std::array<std::uint8_t, kDiskBlockHeader>;

/// Names one block of one state of an object.
struct DiskBlockKey {
  Sha256 state{};
  std::uint64_t state_length = 0;
  std::uint64_t block = 0;

  static DiskBlockKey of(const std::string& state, std::uint64_t block);
};

/// Where the file lies: the name of the file, and the number of its sub-directory.
struct DiskBlockPlace {
  unsigned directory = 0;  // 0 to 255
  std::string name;        // 32 hexadecimal digits
};

DiskBlockPlace place_of(const DiskBlockKey& key);

/// Returns the name of a sub-directory: two hexadecimal digits.
std::string directory_name(unsigned directory);
/// Returns whether a file of this name may be that of a block.
bool is_block_name(const std::string& name);

DiskBlockHeader header_of(const DiskBlockKey& key, codec::ByteView body);
/// Returns whether the header and body are what header_of() gives.
bool holds_block(const DiskBlockHeader& header, const DiskBlockKey& key, codec::ByteView body);

}  // namespace cframefs::frame
