// Where each chunk begins, for frames whose chunks differ in size.
//
// Only the chunks' own headers know their sizes, so all of them are read once. Where one is not known (a chunk that is
// not stored has no header; a header may be damaged), what the others leave of the frame's total settles it. With
// several unknown, everything between the first and the last of them has no known place; what is before and behind
// still has.
//
// Chunks of one size that follow each other are one entry of the table, however many they are.
//
// Thread safety: immutable. Units: plain bytes. Errors: corruption; what the reader of the headers fails with.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

class ChunkTable {
 public:
  /// The next chunks, and the plain length of each of them by its header; none if it cannot be known.
  struct Sizes {
    std::int64_t count = 0;
    std::optional<std::int32_t> nbytes;
  };
  /// Called until it says that there are no more.
  using Measure = std::function<Result<std::optional<Sizes>>()>;

  /// `total`: plain length of all chunks by the frame's header.
  static Result<ChunkTable> build(std::uint64_t total, const Measure& measure);

  /// REQUIRES: at < total.
  Result<ChunkSpan> locate(FlatOffset at) const;
  /// nullopt if not known. REQUIRES: there is this chunk.
  std::optional<std::int32_t> size(std::int64_t chunk) const;

 private:
  /// Chunks of one size; or, without one, those whose places are not known, which is one segment at most.
  struct Segment {
    std::int64_t first = 0;
    std::uint64_t begin = 0;  // of the first chunk
    std::optional<std::int32_t> nbytes;
  };

  void append(const Segment& segment, const Sizes& sizes);
  void settle(std::int64_t last, std::uint64_t missing);

  std::vector<Segment> segments_;
};

}  // namespace cframefs::frame
