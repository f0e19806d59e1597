// The filter pipeline of a chunk, undone: from the bytes that the streams hold to the plain bytes.
//
// Format: filters.md. Filters that shift bytes about need a second buffer, the others work in place; ; a FilterDecoder
// takes each filter to be one pass over the block, and the last to move bytes always ends in the caller's memory.
//
// Thread safety: immutable after creation.
// Errors: unsupported, naming the filter, for those that this build cannot undo; corruption.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "codec/base/bytes.h"
#include "codec/base/error.h"
#include "codec/filter/cells.h"
#include "codec/filter/shuffle.h"
#include "codec/format/chunk_header.h"

namespace cframefs::codec {

struct DecodeParams;

class FilterDecoder {
 public:
  FilterDecoder() = default;

  static Result<FilterDecoder> create(const ChunkHeader& header, const DecodeParams& environment);

  /// Blocks other than 0 need the plain bytes of block 0.
  bool needs_reference() const { return needs_reference_; }

  /// The plain block is all zeros if the filtered one is, and no reference is needed to know it.
  bool keeps_zeros() const { return !needs_reference_; }

  /// Filter 34 never stored the bytes at the end of a block that do not fill an item. What the reference library
  /// returns for them, and what was there when the block was written, is what its buffer held: the block before. This
  /// many bytes of a block of `length` are so; they are to be set with restore_tail() before undo().
  std::size_t missing_tail(std::size_t length) const;

  /// Sets the lost tail of `filtered`, a block not unfiltered yet, from the block before it, in the same state. Leaves
  /// `previous` half unfiltered.
  Result<void> restore_tail(ByteSpan previous, ByteSpan filtered) const;

  /// How many filters move bytes in a block of `length` bytes. If the number is even, the streams are to be decoded
  /// into what will be `out` below, else into a buffer of its own.
  std::size_t swap_count(std::size_t length) const;

  /// Undoes all filters. On entry the filtered block stands in `out` or in `other`, as swap_count() says; on return its
  /// plain bytes are in `out`. `other`: of the same length, needed if swap_count() is not 0, else empty.
  /// `reference`: plain block 0 for all blocks but block 0 itself, which has none.
  Result<void> undo(ByteSpan out, ByteSpan other, ByteView reference) const;

  /// Whether the plain block is unshuffle_planes() of `streams` that share its `length` bytes evenly.
  bool fuses_unshuffle(std::size_t streams, std::size_t length) const {
    return streams <= kMaxPlanes && steps_.size() == 1 && is_plain_shuffle(steps_.front()) &&
           steps_.front().width == streams && length % streams == 0;
  }

  /// Whether a part of a block can be had without undoing the filters of the rest: one shuffle at most.
  bool supports_partial() const { return steps_.empty() || (steps_.size() == 1 && is_plain_shuffle(steps_.front())); }

  /// How much scratch memory undo_window() needs for so many bytes.
  std::size_t window_scratch(std::size_t length) const;

  /// Plain bytes [begin, begin + out.size()) of a block. `filtered`: the whole block. REQUIRES: supports_partial(), the
  /// range lies in the block, scratch.size() >= window_scratch(out.size()); neither buffer overlaps `filtered`.
  void undo_window(ByteView filtered, std::size_t begin, ByteSpan out, ByteSpan scratch) const;

 private:
  struct Step {
    FilterId id;
    std::size_t width;  // of the items (shuffle, bitshuffle, delta); number of planes (bytedelta)
    std::size_t times;  // shuffle: how often it was applied
    bool old_layout;    // bitshuffle of Blosc1
    std::shared_ptr<const CellOrder> cells = nullptr;  // ndcell, ndmean
  };

  static bool is_plain_shuffle(const Step& step) { return step.id == FilterId::shuffle && step.times == 1; }
  static bool moves_bytes(const Step& step, std::size_t length);
  Result<void> add(const ChunkHeader& header, const DecodeParams& environment, int slot);
  Result<void> add_cells(const ChunkHeader& header, const DecodeParams& environment, std::size_t slot);

  std::vector<Step> steps_;  // in the order of undoing
  bool needs_reference_ = false;
  bool shuffle_and_old_bytedelta_ = false;  // and nothing else
};

}  // namespace cframefs::codec
