// The interface of what keeps fetched ranges of objects beyond the life of the process.
//
// Thread safety: internally synchronised. Errors: none: what cannot be kept is fetched again.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codec/base/bytes.h"

namespace cframefs::frame {

class RangeStore {
 public:
  static constexpr std::uint32_t kBlockBytes =
      1U << 20;  // block N holds the bytes from N * kBlockBytes, the last is shorter

  virtual ~RangeStore() = default;
  /// Returns the block, verified; nullopt if it is not kept. `state`: text that names object and state, the same in all
  /// processes.
  virtual std::optional<std::vector<std::uint8_t>> find(const std::string& state, std::uint64_t block) = 0;
  /// A range inside a block.
  struct RangeInBlock {
    std::uint64_t block = 0;
    std::uint64_t block_length = 0;
    std::uint64_t at = 0;  // from the begin of the block
  };
  /// Fills `into` with a range of the block, verified. Returns false if the block is not kept or has another length.
  /// REQUIRES: the range lies in the block.
  virtual bool read(const std::string& state, const RangeInBlock& range, codec::ByteSpan into);
  /// Returns false if find() would find nothing. Cheap, and may be wrong.
  virtual bool may_have(const std::string& /*state*/, std::uint64_t /*block*/) { return false; }
  /// Makes the block ready for read(), so that both together cost little more than one. Returns false if it is not
  /// kept.
  virtual bool prepare(const std::string& state, std::uint64_t block) { return may_have(state, block); }
  virtual void keep(const std::string& state, std::uint64_t block, codec::ByteView bytes) = 0;
  /// Returns false if nothing is ever kept: then readers fetch what they need instead of blocks.
  virtual bool keeps() const = 0;
};

/// Returns a store that keeps nothing.
RangeStore& no_store();

}  // namespace cframefs::frame
