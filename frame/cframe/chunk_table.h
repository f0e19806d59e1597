// Where each chunk begins, for frames whose chunks differ in size.
//
// Only the headers of the chunks record their sizes, so all headers are read once. A size is unknown if the chunk is
// not stored and so has no header, or if its header is damaged. If one size is unknown, it is the frame's total minus
// the known sizes. If several are unknown, the chunks from the first to the last of these have no known offset; the
// chunks before and after them have one.
//
// Consecutive chunks of the same size are one entry of the table.
//
// Thread safety: immutable. Units: uncompressed bytes. Errors: corruption; errors of `measure`.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

class ChunkTable {
 public:
  /// The next `count` chunks, each of `nbytes` uncompressed bytes by its header. nullopt: the size is unknown.
  struct Sizes {
    std::int64_t count = 0;
    std::optional<std::int32_t> nbytes;
  };
  /// Returns the next chunks; nullopt after the last one.
  using Measure = std::function<Result<std::optional<Sizes>>()>;

  /// Calls `measure` until it returns nullopt. `total`: uncompressed bytes of all chunks by the frame's header.
  static Result<ChunkTable> build(std::uint64_t total, const Measure& measure);

  /// Returns the chunk that holds byte `at`. corruption: its offset is unknown. REQUIRES: at < total.
  Result<ChunkSpan> chunk_at(FlatOffset at) const;
  /// Returns the size of `chunk`, or nullopt if the size is unknown. REQUIRES: the chunk exists.
  std::optional<std::int32_t> size(std::int64_t chunk) const;

 private:
  /// Consecutive chunks of one size. At most one segment has no size: the chunks whose offsets are unknown.
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
