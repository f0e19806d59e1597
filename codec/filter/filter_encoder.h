// The filter pipeline of a chunk, applied: from plain bytes to what the streams hold. filters.h undoes it.
//
// Format: filters.md. Only filters that lose nothing. Thread safety: immutable after creation.
// Errors: unsupported, naming the filter.
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
  /// unsupported: a slot holds a filter that loses bits, or that is not ours.
  static Result<void> check(const EncodeParameters& parameters);

  /// For a chunk of `nbytes` in blocks of `blocksize`. Bytedelta is left out where it would not fill whole items: what
  /// it leaves over, releases of C-Blosc2 before 3.3.2 do not restore. REQUIRES: check() passed.
  FilterEncoder(const EncodeParameters& parameters, std::int32_t nbytes, std::int32_t blocksize);

  /// As they go into the chunk's header.
  const std::array<std::uint8_t, kFilterSlots>& filters() const { return filters_; }
  const std::array<std::uint8_t, kFilterSlots>& metas() const { return metas_; }

  /// How many buffers apply() needs: 0, 1 or 2.
  std::size_t buffers() const { return steps_.size() < 2 ? steps_.size() : 2; }

  /// Filters `block`. `reference`: plain block 0 for all blocks but block 0 itself, which has none. Returns what came
  /// out, in one of the two buffers or, without filters, `block` itself.
  ByteView apply(ByteView block, ByteView reference, ByteSpan first, ByteSpan second) const;

 private:
  struct Step {
    FilterId id;
    std::size_t width;  // of the items (shuffle, bitshuffle, delta); number of planes (bytedelta)
  };

  void add(const EncodeParameters& parameters, std::size_t slot, std::int32_t nbytes, std::int32_t blocksize);

  std::array<std::uint8_t, kFilterSlots> filters_{};
  std::array<std::uint8_t, kFilterSlots> metas_{};
  std::vector<Step> steps_;  // in the order of applying
};

}  // namespace cframefs::codec
