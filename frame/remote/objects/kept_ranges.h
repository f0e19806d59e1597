// What a RangeStore keeps of one state of an object: its whole blocks, and its ends, which opening a frame reads and
// which are kept on their own, so that a look at many frames does not fetch two blocks of each.
//
// The first end is short. The last one has the index of a frame and before it 8 bytes for each block: it is longer for
// longer objects. Of an object whose length was not known when it was opened, a last end of another length may be kept.
//
// Thread safety: const members may run concurrently. Ownership: the store must outlive it. Errors: none.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"
#include "frame/remote/http/byte_range.h"
#include "frame/remote/objects/fetched_ranges.h"
#include "frame/remote/objects/range_store.h"

namespace cframefs::frame {

class KeptRanges {
 public:
  static constexpr std::uint64_t kHeadBytes = 64U << 10;
  static constexpr std::uint64_t kLeastTail = 64U << 10;
  static constexpr std::uint64_t kMostTail = RangeStore::kBlockBytes;
  static constexpr std::uint64_t kUnknownTail = 256U << 10;  // of an object whose length is not known
  static_assert(kUnknownTail <= kMostTail && kLeastTail <= kUnknownTail);

  /// Returns how many bytes at the end of an object of this length are fetched to open it.
  static std::uint64_t tail_bytes(std::uint64_t length);

  struct Found {
    ByteRange range;
    std::vector<std::uint8_t> bytes;
  };

  /// `text`: names the state (state_text()). `length`: of the object.
  KeptRanges(RangeStore& store, std::string text, std::uint64_t length);

  bool keeps() const { return store_.keeps(); }
  /// Returns the ends of the object: one range twice if it is short.
  const std::array<ByteRange, 2>& ends() const { return ends_; }
  /// Returns the range of block `block`.
  ByteRange block_range(std::uint64_t block) const;
  /// Returns whether the block is kept, and makes it ready for read().
  bool prepare(std::uint64_t block) const { return store_.prepare(text_, block); }
  /// Returns whether all blocks of a range are kept.
  bool prepare_all(ByteRange range) const;
  /// Returns false if the block is not kept. Cheap, and may be wrong.
  bool may_have(std::uint64_t block) const { return store_.may_have(text_, block); }
  /// Returns false if a block of the range is not kept. As may_have().
  bool may_have_all(ByteRange range) const;
  /// Fills `into` with `part`, which lies in one block, if that block is kept.
  bool read(ByteRange part, codec::ByteSpan into) const;
  /// Returns the kept first (0) or last (1) bytes.
  std::optional<Found> find_end(std::size_t end) const;
  /// Returns kept bytes at an end of the object that hold `part`.
  std::optional<Found> find_at_ends(ByteRange part) const;
  /// Keeps the blocks and ends that bytes have completed which are in `memory` now.
  void keep(FetchedRanges& memory, const ObjectId& object, ByteRange fetched, codec::ByteView bytes) const;

 private:
  ByteRange longest_tail() const { return {length_ - std::min(length_, kMostTail), length_}; }
  void keep_ends(FetchedRanges& memory, const ObjectId& object, ByteRange fetched, codec::ByteView bytes) const;
  std::string end_text(std::size_t end) const { return text_ + (end == 0 ? "\nhead" : "\ntail"); }

  RangeStore& store_;
  const std::string text_;
  const std::uint64_t length_;
  const std::array<ByteRange, 2> ends_;
};

}  // namespace cframefs::frame
