// An n-d array whose first dimension may grow or shrink: computes its metalayer, .npy header and geometry for a given
// number of rows.
//
// A row is all items with the same index along the first dimension: a contiguous stretch of the C-order bytes. Chunks
// of added rows have higher numbers than all existing chunks.
//
// Thread safety: immutable. Units: rows; bytes. Errors: corruption if metalayer and frame contradict each other; io
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
  /// Returns nullopt if the container is not an array.
  static Result<std::optional<GrowableArray>> of(const Container& container);

  std::uint64_t rows() const { return layer_.shape.empty() ? 0 : static_cast<std::uint64_t>(layer_.shape[0]); }
  /// Returns the bytes of a row; 0 for empty rows and for 0-d arrays.
  std::uint64_t row_bytes() const { return row_bytes_; }
  /// Returns true if the number of rows can change: rows have bytes, and chunks have an extent along the first
  /// dimension.
  bool can_change() const;
  /// Returns the rows of a chunk; 0 for 0-d arrays.
  std::uint64_t chunk_rows() const {
    return layer_.chunkshape.empty() ? 0 : static_cast<std::uint64_t>(layer_.chunkshape[0]);
  }

  std::uint64_t typesize() const { return typesize_; }
  std::uint32_t block_bytes() const { return block_bytes_; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }

  /// Returns the geometry with `rows` rows. REQUIRES: can_change(), or rows == this->rows().
  Result<ArrayGeometry> geometry(std::uint64_t rows) const;
  /// Return the name of the metalayer, and its content for `rows` rows, which always has the same length.
  const std::string& layer_name() const { return layer_name_; }
  std::vector<std::uint8_t> layer_content(std::uint64_t rows) const;
  /// Returns the .npy header for `rows` rows. Its length does not depend on the number of rows.
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
