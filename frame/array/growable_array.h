// An n-d array that may change along its first dimension: what its metalayer, its header and its geometry are for a
// given number of rows, all else being as it is.
//
// A row is all that has one index along the first dimension: a contiguous stretch of the C-order bytes. Chunks are
// numbered so that those of further rows follow those that are there.
//
// Thread safety: immutable. Units: rows; bytes. Errors: corruption where metalayer and frame contradict each other; io
// (EFBIG) for more rows than a frame can hold.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "frame/array/array_geometry.h"
#include "frame/cframe/b2nd_meta.h"

namespace cframefs::frame {

class GrowableArray {
 public:
  /// Of a frame; none if it is no array.
  static Result<std::optional<GrowableArray>> of(const Container& container);

  std::uint64_t rows() const { return layer_.shape.empty() ? 0 : static_cast<std::uint64_t>(layer_.shape[0]); }
  /// 0 if a row has no bytes, or if there are no rows to have any (0-d).
  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Whether there can be more or fewer rows: these have bytes, and chunks an extent along the first dimension.
  bool can_change() const;
  /// Rows of a chunk; 0 without a first dimension.
  std::uint64_t chunk_rows() const {
    return layer_.chunkshape.empty() ? 0 : static_cast<std::uint64_t>(layer_.chunkshape[0]);
  }

  std::uint64_t typesize() const { return typesize_; }
  std::uint32_t block_bytes() const { return block_bytes_; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }

  /// REQUIRES: can_change(), or rows == rows().
  Result<ArrayGeometry> geometry(std::uint64_t rows) const;
  /// The metalayer, which keeps its length.
  const std::string& layer_name() const { return layer_name_; }
  std::vector<std::uint8_t> layer_content(std::uint64_t rows) const;
  /// What stands in front of the items in a .npy file. Its length does not depend on the number of rows.
  std::vector<std::uint8_t> npy_head(std::uint64_t rows) const;

 private:
  GrowableArray() = default;
  B2ndMeta with_rows(std::uint64_t rows) const;

  B2ndMeta layer_;
  std::string layer_name_;
  std::vector<std::uint8_t> content_;
  std::uint64_t typesize_ = 1;
  std::uint64_t row_bytes_ = 0;
  std::uint32_t block_bytes_ = 0;
  std::uint32_t chunk_bytes_ = 0;
};

}  // namespace cframefs::frame
