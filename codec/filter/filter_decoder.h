// Undoes the filter pipeline of a chunk: from the decoded streams to the plain bytes.
//
// Format: filters.md. Filters that move bytes need a second buffer; the others work in place. Each filter is one pass
// over the block, and the buffers are chosen so that the last pass that moves bytes writes to the caller's memory.
//
// Thread safety: immutable after creation.
// Errors: corruption; unsupported, naming the filter, if this build cannot undo it.
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

  static Result<FilterDecoder> create(const ChunkHeader& header, const DecodeParams& params);

  /// Returns true if blocks other than 0 need the plain bytes of block 0.
  bool needs_reference() const { return needs_reference_; }

  /// Returns true if a filtered block of zeros always gives a plain block of zeros.
  bool keeps_zeros() const { return !needs_reference_; }

  /// Returns how many bytes at the end of a block of `length` filter 34 did not store, because they do not fill an
  /// item.
  /// The caller must set them with restore_tail() before undo(). The reference library returns for them what its buffer
  /// held when the block was written: bytes of the previous block.
  std::size_t missing_tail(std::size_t length) const;

  /// Sets the missing tail of `filtered` from `previous`, the block before it; both are still filtered. Leaves
  /// `previous` partly unfiltered.
  Result<void> restore_tail(ByteSpan previous, ByteSpan filtered) const;

  /// Returns how many filters move bytes in a block of `length` bytes. If the number is even, the caller must decode
  /// the streams into the `out` of undo(), else into `other`.
  std::size_t swap_count(std::size_t length) const;

  /// Undoes all filters. On entry the filtered block is in `out` or in `other`, see swap_count(); on return the plain
  /// bytes are in `out`. `other`: of the same length, or empty if swap_count() is 0. `reference`: plain block 0, empty
  /// for block 0 itself.
  Result<void> undo(ByteSpan out, ByteSpan other, ByteView reference) const;

  /// Returns true if unshuffle_planes() of the `streams` streams of a block of `length` bytes gives the plain block.
  bool fuses_unshuffle(std::size_t streams, std::size_t length) const {
    return streams <= kMaxPlanes && steps_.size() == 1 && is_plain_shuffle(steps_.front()) &&
           steps_.front().width == streams && length % streams == 0;
  }

  /// Returns true if undo_window() works: the pipeline is empty or a single shuffle.
  bool supports_partial() const { return steps_.empty() || (steps_.size() == 1 && is_plain_shuffle(steps_.front())); }

  /// Returns the scratch memory that undo_window() needs for `length` bytes.
  std::size_t window_scratch(std::size_t length) const;

  /// Computes plain bytes [begin, begin + out.size()) of a block. `filtered`: the whole block. REQUIRES:
  /// supports_partial(); the range lies in the block; scratch.size() >= window_scratch(out.size()); neither buffer
  /// overlaps `filtered`.
  void undo_window(ByteView filtered, std::size_t begin, ByteSpan out, ByteSpan scratch) const;

 private:
  struct Step {
    FilterId id;
    std::size_t width;                                 // bytes of an item; bytedelta: number of planes
    std::size_t times;                                 // shuffle: number of applications
    bool old_layout;                                   // bitshuffle: layout of Blosc1
    std::shared_ptr<const CellOrder> cells = nullptr;  // ndcell, ndmean
  };

  static bool is_plain_shuffle(const Step& step) { return step.id == FilterId::shuffle && step.times == 1; }
  static bool moves_bytes(const Step& step, std::size_t length);
  Result<void> add(const ChunkHeader& header, const DecodeParams& params, int slot);
  Result<void> add_cells(const ChunkHeader& header, const DecodeParams& params, std::size_t slot);

  std::vector<Step> steps_;  // in order of undoing
  bool needs_reference_ = false;
  bool shuffle_and_old_bytedelta_ = false;  // the pipeline is shuffle, then filter 34
};

}  // namespace cframefs::codec
