// N-d arrays made by hand, item by item as the format says: an oracle that shares no code with the reader.
//
// Thread safety: functions and plain values. Padding is filled with 0xcc, so that it shows wherever it does not belong.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/frame_builder.h"

namespace cframefs::test {

struct ArraySpec {
  std::vector<std::int64_t> shape;
  std::vector<std::int32_t> chunkshape;
  std::vector<std::int32_t> blockshape;
  std::int32_t typesize = 1;
  std::optional<std::string> dtype;  // none: a `caterva` layer

  std::int64_t item_count() const;
  /// Of the C-order bytes.
  std::size_t nbytes() const { return static_cast<std::size_t>(item_count() * typesize); }
  std::int64_t chunk_count() const;
  std::int32_t chunk_bytes() const;
  std::int32_t block_bytes() const;
};

/// The content of the metalayer.
Bytes array_layer(const ArraySpec& spec);

enum class ArrayChunk {
  blocks,  // its blocks stored raw, decoded one by one
  plain,   // a plain copy without blocks
  zeros,   // not stored; REQUIRES: all its items are zero
};

/// The plain bytes of each chunk. `items`: the C-order bytes.
std::vector<Bytes> array_chunks(const ArraySpec& spec, codec::ByteView items);

/// A frame that is this array; `kind` says how each chunk is stored.
FrameBuilder array_frame(const ArraySpec& spec, codec::ByteView items,
                         const std::function<ArrayChunk(std::int64_t chunk)>& kind);
/// All chunks with their blocks.
FrameBuilder array_frame(const ArraySpec& spec, codec::ByteView items);

/// Bytes that differ from their neighbours.
Bytes varied_items(std::size_t size, std::uint64_t seed = 1);

}  // namespace cframefs::test
