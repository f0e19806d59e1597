// What a RangeStore keeps of one state of an object: its whole blocks, and its first and last 64 KiB, which opening a
// frame reads and which are kept on their own, so that a look at many frames does not fetch two blocks of each.
//
// Thread safety: const members may run concurrently. Ownership: the store must outlive it. Errors: none.
#pragma once

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
  static constexpr std::uint64_t kEndBytes = 64U << 10;

  struct Found {
    ByteRange range;
    std::vector<std::uint8_t> bytes;
  };

  /// `text`: names the state (state_text()). `length`: of the object.
  KeptRanges(RangeStore& store, std::string text, std::uint64_t length);

  bool keeps() const { return store_.keeps(); }
  /// Returns the first and the last bytes of the object: one range twice if it is short.
  const std::array<ByteRange, 2>& ends() const { return ends_; }
  /// Returns the range of block `block`.
  ByteRange block_range(std::uint64_t block) const;
  /// Returns whether find() may find the block.
  bool may_have(std::uint64_t block) const { return store_.may_have(text_, block); }
  /// Returns kept bytes that hold `part`, which lies in one block.
  std::optional<Found> find(ByteRange part) const;
  /// Keeps the blocks and ends that bytes have completed which are in `memory` now.
  void keep(FetchedRanges& memory, const ObjectId& object, ByteRange fetched, codec::ByteView bytes) const;

 private:
  std::string end_text(std::size_t end) const { return text_ + (end == 0 ? "\nhead" : "\ntail"); }

  RangeStore& store_;
  const std::string text_;
  const std::uint64_t length_;
  const std::array<ByteRange, 2> ends_;
};

}  // namespace cframefs::frame
