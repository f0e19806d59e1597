#include "codec/filter/cells.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <string>

#include <fmt/core.h>

#include "codec/format/chunk_header.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kMaxDimensions = 16;

}  // namespace

Result<CellOrder> CellOrder::create(std::span<const std::int32_t> blockshape, std::size_t side, std::size_t itemsize) {
  if (blockshape.empty() || blockshape.size() > kMaxDimensions) {
    return corrupt(fmt::format("n-d filter with a block shape of {} dimensions, allowed are 1 to {}", blockshape.size(),
                               kMaxDimensions));
  }
  if (side == 0) return corrupt("n-d filter with cells of side 0");
  CellOrder order;
  order.side_ = side;
  order.itemsize_ = itemsize;
  order.size_ = itemsize;
  order.dimensions_.resize(blockshape.size());
  for (std::size_t d = blockshape.size(); d-- > 0;) {
    if (blockshape[d] <= 0 || order.size_ > static_cast<std::size_t>(kMaxBlockBytes)) {
      return corrupt(fmt::format("invalid block shape: extent {} of dimension {}", blockshape[d], d));
    }
    order.dimensions_[d] = {static_cast<std::size_t>(blockshape[d]), order.size_};
    order.size_ *= order.dimensions_[d].extent;
  }
  return order;
}

// Copies one cell. Its rows are contiguous in `in`, and a stride apart in `out`.
void CellOrder::undo_cell(ByteView& in, ByteSpan out, std::size_t d, std::size_t at,
                          std::span<const std::size_t> begins) const {
  const std::size_t begin = begins[d];
  const std::size_t end = std::min(begin + side_, dimensions_[d].extent);
  if (d + 1 == dimensions_.size()) {
    const std::size_t length = (end - begin) * itemsize_;
    std::memcpy(&out[at + begin * itemsize_], in.data(), length);
    in = in.subspan(length);
    return;
  }
  for (std::size_t i = begin; i < end; ++i)
    undo_cell(in, out, d + 1, at + i * dimensions_[d].stride, begins);
}

void CellOrder::undo(ByteView in, ByteSpan out) const {
  std::array<std::size_t, kMaxDimensions> begins{};
  const std::size_t count = dimensions_.size();
  while (true) {
    undo_cell(in, out, 0, 0, std::span(begins).first(count));
    // Advance to the next cell; the last dimension changes fastest.
    std::size_t d = count;
    while (d > 0) {
      --d;
      begins[d] += side_;
      if (begins[d] < dimensions_[d].extent) break;
      begins[d] = 0;
      if (d == 0) return;
    }
  }
}

}  // namespace cframefs::codec
