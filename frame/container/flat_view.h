// The flat file that programs see: its size, and the mapping of its ranges to bytes of chunks.
//
// Views: chunk order for plain frames (here); C order for n-d arrays, optionally after a .npy header (array_view.h).
// Thread safety: immutable. Ownership: shares the container.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

/// `length` plain bytes of a chunk from `inner`, which belong at offset `out` of the requested range.
struct Piece {
  ChunkNumber chunk;
  std::uint32_t inner = 0;
  std::uint32_t length = 0;
  std::uint64_t out = 0;
};

class ArrayGeometry;

class FlatView {
 public:
  virtual ~FlatView() = default;
  virtual const Container& container() const = 0;
  virtual std::uint64_t size() const = 0;
  /// Returns the bytes before those of the chunks, such as a .npy header.
  virtual ByteView head() const { return {}; }
  /// Returns the geometry if the chunks are tiles of an array, else nullptr. The bytes after head() then are in C
  /// order, and map() would return pieces too small to be read one by one.
  virtual const ArrayGeometry* array_geometry() const { return nullptr; }
  /// Appends to `pieces` the pieces of the part of [at, at + length) after head(), in order of `out`. REQUIRES: at +
  /// length <= size().
  virtual Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const = 0;
  /// Returns the first byte at or after `from` in data or, with `hole`, in a hole, as lseek(2). size() means the
  /// hole at the end; for data it means that there is none. Errors: those of the container.
  virtual Result<FlatOffset> seek(FlatOffset from, bool hole) const = 0;
};

/// Returns the view of the concatenated chunks.
std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container);

/// Returns the view of `head`, followed by the concatenated chunks.
std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container,
                                                 std::vector<std::uint8_t> head);

}  // namespace cframefs::frame
