// A flat file that is the concatenation of all chunks, perhaps after a head: the mapping of its ranges to bytes of
// chunks.
//
// Thread safety: immutable. Ownership: borrows the container. Errors: those of the container; invalid.
#pragma once

#include <cstdint>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

/// `length` plain bytes of a chunk from `inner`, which belong at offset `out` of the requested range.
struct Piece {
  ChunkNumber chunk;
  std::uint32_t inner = 0;
  std::uint32_t length = 0;
  std::uint64_t out = 0;
};

class ChunkOrder {
 public:
  /// `head`: bytes of the file before those of the chunks.
  explicit ChunkOrder(const Container& container, std::uint64_t head = 0) : container_(&container), head_(head) {}

  /// Appends to `pieces` the pieces of the part of [at, at + length) after the head, in order of `out`. invalid: the
  /// range ends past the end of the file.
  Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const;

 private:
  const Container* container_;
  std::uint64_t head_;
};

}  // namespace cframefs::frame
