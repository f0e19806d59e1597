// The flat file over a container: its size, and which bytes of which chunks make up a range of it.
//
// Views: chunk order for plain frames (here); C order for n-d arrays, with or without the header of a .npy file in
// front (array_view.h). Thread safety: immutable. Ownership: shares the container.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frame/container/container.h"

namespace cframefs::frame {

/// `length` plain bytes of a chunk, from `inner`, belong at `out` of the range that was asked for.
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
  /// Bytes that stand in front of those of the chunks and belong to none.
  virtual ByteView head() const { return {}; }
  /// Set where the chunks are tiles of an array: behind head() come its C-order bytes, which map() gives in pieces too
  /// small to be read one by one.
  virtual const ArrayGeometry* array_geometry() const { return nullptr; }
  /// Appends the pieces of [at, at + length) less head() to `pieces`, in order of `out`. REQUIRES: at + length <=
  /// size().
  virtual Result<void> map(FlatOffset at, std::uint64_t length, std::vector<Piece>& pieces) const = 0;
  /// As lseek(2): the first byte at or after `from` in data (or a hole); size() for the hole at the end; corruption
  /// passes through. For data, size() means that there is none.
  virtual Result<FlatOffset> seek(FlatOffset from, bool hole) const = 0;
};

/// The chunks laid end to end.
std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container);

/// The chunks laid end to end, behind bytes that belong to none.
std::shared_ptr<const FlatView> chunk_order_view(std::shared_ptr<const Container> container,
                                                 std::vector<std::uint8_t> head);

}  // namespace cframefs::frame
