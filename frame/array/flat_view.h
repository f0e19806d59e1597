// The flat file that programs see: a head, such as the header of a .npy file, and the bytes of the chunks.
//
// Behind the head either the chunks follow each other (ChunkOrder), or the items of an n-d array follow each other in C
// order, and the chunks are tiles of the array (ArrayGeometry). The types differ, because their readers do: a range of
// concatenated chunks is a few pieces, but a range of an array may be one item of each of many blocks.
//
// Thread safety: immutable. Ownership: shares the container. Errors: those of the container.
#pragma once

#include <cstdint>
#include <memory>
#include <variant>
#include <vector>

#include "frame/array/array_geometry.h"
#include "frame/container/chunk_order.h"

namespace cframefs::frame {

class FlatView {
 public:
  /// The view of `head`, followed by the concatenated chunks.
  explicit FlatView(std::shared_ptr<const Container> container, std::vector<std::uint8_t> head = {});
  /// The view of `head`, followed by the items of an array.
  FlatView(std::shared_ptr<const Container> container, ArrayGeometry array, std::vector<std::uint8_t> head);
  FlatView(const FlatView&) = delete;
  FlatView& operator=(const FlatView&) = delete;

  const Container& container() const { return *container_; }
  std::uint64_t size() const;
  /// Returns the bytes before those of the chunks.
  ByteView head() const { return head_; }

  /// Returns the order of the bytes after head() if the chunks are concatenated, else nullptr: then array() is set.
  const ChunkOrder* chunk_order() const { return std::get_if<ChunkOrder>(&layout_); }
  /// Returns the geometry if the bytes after head() are the items of an array, else nullptr: then chunk_order() is set.
  const ArrayGeometry* array() const { return std::get_if<ArrayGeometry>(&layout_); }
  /// Returns whether the bytes are those of the concatenated chunks and nothing else.
  bool is_chunks_only() const { return head_.empty() && chunk_order() != nullptr; }

  /// Returns the first byte at or after `from` in data or, with `hole`, in a hole, as lseek(2). size() means the
  /// hole at the end; for data it means that there is none.
  Result<FlatOffset> seek(FlatOffset from, bool hole) const;

 private:
  Result<FlatOffset> seek_chunk(FlatOffset from, bool hole) const;
  Result<FlatOffset> seek_slab(const ArrayGeometry& array, FlatOffset from, bool hole) const;
  Result<std::uint64_t> next_slab(const ArrayGeometry& array, std::uint64_t slab, bool hole) const;

  const std::shared_ptr<const Container> container_;
  const std::vector<std::uint8_t> head_;
  const std::variant<ChunkOrder, ArrayGeometry> layout_;
};

}  // namespace cframefs::frame
