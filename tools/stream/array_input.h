// The chunks of a new n-d array as a stream of uncompressed bytes, built from a stream of its items in C order.
//
// Thread safety: one thread. Ownership: owns its source. Errors: those of the source; unsupported (an array that is too
// large with its padding).
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "frame/array/array_geometry.h"
#include "frame/array/array_partition.h"
#include "tools/lib/io.h"

namespace cframefs::tools {

class ArrayInput final : public Input {
 public:
  /// `items`: the array's C-order bytes. REQUIRES: `layer` comes from plan_array() for items of this size.
  static codec::Result<std::unique_ptr<ArrayInput>> create(std::unique_ptr<Input> items, const frame::B2ndMeta& layer,
                                                           std::uint64_t itemsize);

  /// Returns the bytes of all chunks.
  std::uint64_t size() const { return geometry_.chunk_count() * geometry_.chunk_bytes(); }

  codec::Result<std::size_t> read(codec::ByteSpan into) override;

 private:
  ArrayInput(std::unique_ptr<Input> items, frame::ArrayGeometry geometry, std::uint64_t stretch)
      : items_(std::move(items)), geometry_(std::move(geometry)), stretch_(stretch) {}
  codec::Result<void> make_chunk();

  const std::unique_ptr<Input> items_;
  const frame::ArrayGeometry geometry_;
  const std::uint64_t stretch_;  // C-order bytes after which the next line of chunks begins
  std::uint64_t at_ = 0;         // C-order bytes read so far
  std::vector<std::uint8_t> plain_;
  std::vector<std::uint8_t> chunk_;
  std::size_t taken_ = 0;  // bytes of chunk_ that were returned
};

}  // namespace cframefs::tools
