// The item order of the filters ndcell and ndmean: cell by cell of an n-d block (filters.md section 9).
//
// Thread safety: immutable. Units: bytes; shapes are in items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

class CellOrder {
 public:
  /// Makes the order for a block of this shape. Cells have `side` items along each dimension, fewer at the block's end.
  /// corruption: no block can have this shape.
  static Result<CellOrder> create(std::span<const std::int32_t> blockshape, std::size_t side, std::size_t itemsize);

  /// Returns the length of a block.
  std::size_t size() const { return size_; }

  /// Converts cell-by-cell order to row-major order. REQUIRES: both of size(), not overlapping.
  void undo(ByteView in, ByteSpan out) const;

 private:
  struct Dimension {
    std::size_t extent = 0;  // items
    std::size_t stride = 0;  // bytes
  };

  void undo_cell(ByteView& in, ByteSpan out, std::size_t d, std::size_t at, std::span<const std::size_t> begins) const;

  std::vector<Dimension> dimensions_;
  std::size_t side_ = 1;
  std::size_t itemsize_ = 1;
  std::size_t size_ = 0;
};

}  // namespace cframefs::codec
