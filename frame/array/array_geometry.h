// The geometry of an n-d array: maps ranges of its C-order bytes to boxes of chunks and blocks.
//
// The last dimension is counted in bytes instead of items, so a range may begin and end inside an item. A dimension
// that is not cut into chunks or blocks is merged with the one before it, so that copies become as wide as possible.
// Format: b2nd.md sections 2 and 3.
//
//   range  --for_each_part()-->  parts (a box within one chunk)  --for_each_tile()-->  tiles (a box within one block)
//
// Thread safety: immutable. Errors: corruption if shapes and frame contradict each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "frame/array/strided_copy.h"
#include "frame/cframe/b2nd_meta.h"
#include "frame/container/container.h"

namespace cframefs::frame {

/// Rows [begin, end) of a block. The default is all rows.
struct BlockRows {
  std::uint64_t begin = 0;
  std::uint64_t end = ~std::uint64_t{0};
};

class ArrayGeometry {
 public:
  using Coordinates = std::array<std::uint64_t, kMaxDimensions>;

  /// A box of the array that lies within one chunk.
  struct Part {
    ChunkNumber chunk;
    std::uint64_t out = 0;  // offset of its first byte in the requested range
    StridedBox to;          // the box in the C-order bytes; from_stride has no meaning
    Coordinates begin{};    // within the chunk
    Coordinates end{};
    Coordinates origin{};  // of the chunk in the array
  };
  /// A box of a part that lies within one block.
  struct Tile {
    std::uint32_t block = 0;
    std::uint32_t inner = 0;  // offset of its first byte in the decoded chunk
    std::uint64_t out = 0;    // as Part::out
    StridedBox box;
  };

  /// Returns the geometry of the array `layer` in a frame with these parameters.
  static Result<ArrayGeometry> make(const B2ndMeta& layer, const FrameParameters& parameters);
  /// Returns the geometry of an array without a frame. `typesize`: bytes of an item.
  static Result<ArrayGeometry> of_layer(const B2ndMeta& layer, std::uint64_t typesize);

  /// Returns the bytes of all items.
  std::uint64_t nbytes() const { return nbytes_; }
  std::uint64_t chunk_count() const { return chunk_count_; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }
  std::uint32_t block_bytes() const { return block_bytes_; }
  /// Returns the number of blocks of a chunk along the last dimension.
  std::uint32_t row_blocks() const { return row_blocks_; }

  using VisitPart = std::function<Result<void>(const Part&)>;
  using VisitTile = std::function<Result<void>(const Tile&)>;
  /// Calls `visit` with each part of C-order bytes [at, at + length), until it returns an error. invalid: the range
  /// lies past nbytes().
  Result<void> for_each_part(std::uint64_t at, std::uint64_t length, const VisitPart& visit) const;
  /// Calls `visit` only with the parts in `chunk`. The time does not depend on the number of other parts.
  Result<void> for_each_part_in(ChunkNumber chunk, std::uint64_t at, std::uint64_t length,
                                const VisitPart& visit) const;
  /// Calls `visit` with each tile of a part, in the order of blocks, until it returns an error.
  Result<void> for_each_tile(const Part& part, const VisitTile& visit) const;

  /// Returns the bytes, without padding, of these rows of blocks [first, first + count) of the chunk at `origin`.
  /// REQUIRES: the blocks follow each other along the last dimension.
  std::uint64_t item_bytes(const Coordinates& origin, std::uint32_t first, std::uint32_t count,
                           const BlockRows& rows = {}) const;

  /// Returns the bytes of a chunk without padding. REQUIRES: 0 <= chunk < chunk_count().
  std::uint64_t item_bytes(ChunkNumber chunk) const;

  /// Slab: the smallest C-order range after which a sequential reader needs none of the touched blocks again. The
  /// slab's dimension is the first one along which a block has more than one row; the reader needs each block once per
  /// row. slab_bytes() returns the bytes of the range, slab_block_bytes() the bytes of all its blocks.
  std::uint64_t slab_bytes() const;
  std::uint64_t slab_block_bytes() const;
  /// Return the number of rows of a block along the slab's dimension, and the bytes of a row. The rows are contiguous
  /// in the block.
  std::uint64_t block_rows() const;
  std::uint64_t block_row_bytes() const;

  using VisitBand = std::function<Result<void>(const Part&, std::uint32_t)>;
  /// Splits a part into pieces that touch only one band of `rows` rows of each block, and calls `visit` with each piece
  /// and the number of its band. Part::to remains that of the whole part.
  Result<void> for_each_band(const Part& part, std::uint64_t rows, const VisitBand& visit) const;

  /// Return the number of chunks with the same position along the first dimension, and the C-order bytes that these
  /// chunks hold together (fewer at the end of the array). Both are 0 if the array is empty.
  std::uint64_t slab_chunks() const;
  std::uint64_t outer_slab_bytes() const;

 private:
  struct Dimension {
    std::uint64_t shape = 0;
    std::uint64_t chunk = 0;
    std::uint64_t block = 0;
    std::uint64_t chunks = 0;        // in the array
    std::uint64_t blocks = 0;        // in a chunk
    std::uint64_t chunk_step = 0;    // difference of chunk numbers between neighbours along this dimension
    std::uint64_t block_step = 0;    // difference of block numbers between neighbours along this dimension
    std::uint64_t flat_stride = 0;   // in the C-order bytes
    std::uint64_t block_stride = 0;  // in the bytes of a block
  };
  struct Box {
    Coordinates begin{};
    Coordinates end{};
  };

  Result<void> parse_dimensions(const B2ndMeta& layer, std::uint64_t typesize);
  Result<void> compute_sizes();
  Result<void> check_frame(const FrameParameters& parameters) const;
  Result<void> for_each_box(std::size_t d, Box& box, std::uint64_t begin, std::uint64_t end,
                            const std::function<Result<void>(const Box&)>& visit) const;
  Result<void> split_box(const Box& box, std::uint64_t at, const VisitPart& visit) const;
  Coordinates coordinates_of(ChunkNumber chunk) const;
  std::size_t slab_dimension() const;
  Part part_of(const Box& box, const Coordinates& chunk, std::uint64_t at) const;
  Tile tile_of(const Part& part, const Coordinates& block) const;

  std::vector<Dimension> dimensions_;  // at least one
  std::uint64_t nbytes_ = 0;
  std::uint64_t chunk_count_ = 0;
  std::uint32_t chunk_bytes_ = 0;
  std::uint32_t block_bytes_ = 0;
  std::uint32_t row_blocks_ = 1;
};

}  // namespace cframefs::frame
