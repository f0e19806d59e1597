// Has the kernel read ranges of files of the mount into its page cache, by ordinary reads.
//
// Thread safety: called by several threads concurrently. Ownership: none. Errors: none; the range may stay unread.
#pragma once

#include <cstdint>

#include "fs/tree/node_table.h"

namespace cframefs::fs {

class PageFiller {
 public:
  virtual ~PageFiller() = default;
  /// Has the kernel read the bytes [at, at + length) of a file, without waiting for it. `state`: a number that changes
  /// with the file's content. Returns false if that cannot be requested now.
  virtual bool fill(NodeId node, std::uint64_t state, std::uint64_t at, std::uint64_t length) = 0;
};

}  // namespace cframefs::fs
