// Where the items of an n-d array lie: which box of which block of which chunk belongs where in the C-order bytes.
//
// Everything is in bytes: the last dimension is counted in bytes instead of items, so a range may begin and end inside
// an item. Dimensions that no chunk and no block cuts are merged with the one before them, so that copies become as
// wide as they can be. Format: b2nd.md sections 2 and 3.
//
//   range  --for_each_part()-->  parts (a box within one chunk)  --for_each_tile()-->  tiles (a box within one block)
//
// Thread safety: immutable. Errors: corruption where shapes and frame contradict each other.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <vector>

#include "frame/array/strided_copy.h"
#include "frame/cframe/b2nd_meta.h"

namespace cframefs::frame {

/// Rows [begin, end) of a block; all of them if nothing is said.
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
    std::uint64_t out = 0;  // of its first byte, from the begin of the range that was asked for
    StridedBox to;          // where it belongs; the from_strides mean nothing
    Coordinates begin{};    // within the chunk
    Coordinates end{};
    Coordinates origin{};  // of the chunk in the array
  };
  /// A box of a part that lies within one block.
  struct Tile {
    std::uint32_t block = 0;
    std::uint32_t inner = 0;  // of its first byte, in the decoded chunk
    std::uint64_t out = 0;    // as Part::out
    StridedBox box;
  };

  /// What `layer` says of a frame with these parameters.
  static Result<ArrayGeometry> make(const B2ndMeta& layer, const FrameParameters& parameters);
  /// What `layer` alone says, of an array that is still to be. `typesize`: bytes of an item.
  static Result<ArrayGeometry> of_layer(const B2ndMeta& layer, std::uint64_t typesize);

  /// Of all items.
  std::uint64_t nbytes() const { return nbytes_; }
  std::uint64_t chunk_count() const { return chunk_count_; }
  std::uint32_t chunk_bytes() const { return chunk_bytes_; }
  std::uint32_t block_bytes() const { return block_bytes_; }
  /// Blocks of a chunk that follow each other along the last dimension.
  std::uint32_t row_blocks() const { return row_blocks_; }

  using TakePart = std::function<Result<void>(const Part&)>;
  using TakeTile = std::function<Result<void>(const Tile&)>;
  /// Calls `take` with the parts of C-order bytes [at, at + length), until it fails. REQUIRES: at + length <= nbytes().
  Result<void> for_each_part(std::uint64_t at, std::uint64_t length, const TakePart& take) const;
  /// The same with those parts alone that lie in `chunk`, in time that does not depend on how many there are in all.
  Result<void> for_each_part_in(ChunkNumber chunk, std::uint64_t at, std::uint64_t length, const TakePart& take) const;
  /// The same with the tiles of a part, in the order of their blocks.
  Result<void> for_each_tile(const Part& part, const TakeTile& take) const;

  /// Bytes of these rows of blocks [first, first + count) of the chunk at `origin` that are items of the array, and no
  /// padding. REQUIRES: these blocks follow each other along the last dimension.
  std::uint64_t item_bytes(const Coordinates& origin, std::uint32_t first, std::uint32_t count,
                           const BlockRows& rows = {}) const;

  /// Bytes of a chunk that are items of the array. REQUIRES: 0 <= chunk < chunk_count().
  std::uint64_t item_bytes(ChunkNumber chunk) const;

  /// C-order bytes after which a reader has done with all the blocks that it touched (a slab), and the bytes of these
  /// blocks. He comes back to each of them for every row that it has along the slab's dimension: the first one that
  /// blocks have more than one row of.
  std::uint64_t slab_bytes() const;
  std::uint64_t slab_block_bytes() const;
  /// These rows of a block, which lie one after the other in it, and the bytes of one.
  std::uint64_t block_rows() const;
  std::uint64_t block_row_bytes() const;

  using TakeBand = std::function<Result<void>(const Part&, std::uint32_t)>;
  /// Cuts a part so that each piece touches of every block only one band of `rows` rows, and calls `take` with the
  /// pieces and the number of the band. Part::to stays that of the whole part.
  Result<void> for_each_band(const Part& part, std::uint64_t rows, const TakeBand& take) const;

  /// How many chunks have the same place along the first dimension, and the C-order bytes that these hold together
  /// (fewer at the end of the array). Both 0 if the array is empty.
  std::uint64_t slab_chunks() const;
  std::uint64_t outer_slab_bytes() const;

 private:
  struct Dimension {
    std::uint64_t shape = 0;
    std::uint64_t chunk = 0;
    std::uint64_t block = 0;
    std::uint64_t chunks = 0;      // in the array
    std::uint64_t blocks = 0;      // in a chunk
    std::uint64_t chunk_step = 0;  // how far chunk and block numbers go with one step along this dimension
    std::uint64_t block_step = 0;
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
                            const std::function<Result<void>(const Box&)>& take) const;
  Result<void> split_box(const Box& box, std::uint64_t at, const TakePart& take) const;
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
