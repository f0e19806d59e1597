// The order in which the filters ndcell and ndmean put the items of an n-d block: cell by cell (filters.md section 9).
//
// Thread safety: immutable. Units: bytes, but for shapes, which are items.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"

namespace cframefs::codec {

class CellOrder {
 public:
  /// Cells have `side` items along each dimension of a block of this shape, fewer at its ends. corruption: there can be
  /// no such block.
  static Result<CellOrder> create(std::span<const std::int32_t> blockshape, std::size_t side, std::size_t itemsize);

  /// Of a block.
  std::size_t size() const { return size_; }

  /// From cell by cell to row by row. REQUIRES: both of size(), not overlapping.
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
