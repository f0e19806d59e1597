// Where each chunk begins, for frames whose chunks differ in size.
//
// Only the chunks' own headers know their sizes, so all of them are read once. Where one is not known (a chunk that is
// not stored has no header; a header may be damaged), what the others leave of the frame's total settles it. With
// several unknown, everything between the first and the last of them has no known place; what is before and behind
// still has.
//
// Thread safety: immutable. Units: plain bytes. Errors: corruption; io from whoever reads the headers.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frame/container.h"

namespace cframefs::frame {

class ChunkTable {
 public:
  /// The plain length of a chunk by its header; nullopt if it cannot be known. Called for each chunk in order.
  using Measure = std::function<Result<std::optional<std::int32_t>>(std::int64_t chunk)>;

  /// `total`: plain length of all chunks by the frame's header.
  static Result<ChunkTable> build(std::int64_t count, std::uint64_t total, const Measure& measure);

  /// REQUIRES: at < total.
  Result<ChunkSpan> locate(FlatOffset at) const;
  /// nullopt if not known.
  std::optional<std::int32_t> size(std::int64_t chunk) const;

 private:
  std::vector<std::uint64_t> begins_;  // of each chunk, and the end of the last
  // Chunks [unplaced_begin_, unplaced_end_) have no known place; begins_ is that of the first of them for all.
  std::int64_t unplaced_begin_ = 0;
  std::int64_t unplaced_end_ = 0;
};

}  // namespace cframefs::frame
