// Applies the filter pipeline of a chunk: from plain bytes to the content of the streams. filter_decoder.h undoes it.
//
// Format: filters.md. Lossless filters only. Thread safety: immutable after creation. Errors: unsupported, naming the
// filter.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/format/chunk_header.h"

namespace cframefs::codec {

struct EncodeParameters;

class FilterEncoder {
 public:
  /// Checks the filters. unsupported: a slot holds a lossy or unknown filter, or one that is only decoded.
  static Result<void> check(const EncodeParameters& parameters);

  /// Makes the pipeline for a chunk of `nbytes` in blocks of `blocksize`. Omits bytedelta if a block is not whole
  /// items, because releases of C-Blosc2 before 3.3.2 do not restore the rest of the block. REQUIRES: check() passed.
  FilterEncoder(const EncodeParameters& parameters, std::int32_t nbytes, std::int32_t blocksize);

  /// Return the filter slots for the chunk's header.
  const std::array<std::uint8_t, kFilterSlots>& filters() const { return filters_; }
  const std::array<std::uint8_t, kFilterSlots>& metas() const { return metas_; }

  /// Returns how many buffers apply() needs: 0, 1 or 2.
  std::size_t buffers() const { return steps_.size() < 2 ? steps_.size() : 2; }

  /// Filters `block`. `reference`: plain block 0, empty for block 0 itself. Returns the filtered bytes, which are in
  /// one of the two buffers, or `block` itself if there are no filters.
  ByteView apply(ByteView block, ByteView reference, ByteSpan first, ByteSpan second) const;

 private:
  struct Step {
    FilterId id;
    std::size_t width;  // bytes of an item; bytedelta: number of planes
  };

  void add(const EncodeParameters& parameters, std::size_t slot, std::int32_t nbytes, std::int32_t blocksize);

  std::array<std::uint8_t, kFilterSlots> filters_{};
  std::array<std::uint8_t, kFilterSlots> metas_{};
  std::vector<Step> steps_;  // in order of application
};

}  // namespace cframefs::codec
