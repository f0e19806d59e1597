// The digests of a stored chunk, and which of its bytes each of them covers (seal.md section 2).
//
// Thread safety: functions and plain values; const members may run concurrently. Ownership: ChunkDigests shares the
// memory that holds the digests. Units: bytes.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "codec/chunk_decoder.h"
#include "frame/base/coordinates.h"
#include "frame/io/byte_source.h"

namespace cframefs::frame {

/// The digests of one chunk; none if it is not verified.
class ChunkDigests {
 public:
  ChunkDigests() = default;
  /// `owner`: keeps the memory of `values`.
  ChunkDigests(ChunkNumber chunk, std::span<const std::int64_t> values, std::shared_ptr<const void> owner)
      : chunk_(chunk), values_(values), owner_(std::move(owner)) {}

  bool any() const { return !values_.empty(); }
  /// Returns true if one digest covers the whole chunk.
  bool is_whole() const { return values_.size() == 1; }
  /// Returns true if there is a digest for each block, after one for what is before the blocks.
  bool has_blocks() const { return values_.size() > 1; }
  /// Returns the digests, as the bits of signed integers.
  std::span<const std::int64_t> values() const { return values_; }

  /// Returns the seed of a unit's digest: the same bytes in another place have another digest.
  std::uint64_t seed(std::uint32_t unit) const;

  /// Returns corruption if the header, which `decoder` has parsed, describes another number of units than there are
  /// digests.
  Result<void> check_count(const codec::ChunkDecoder& decoder) const;
  /// Verifies the bytes of a unit. corruption: the digest differs; the reason has both. REQUIRES: unit <
  /// values().size().
  Result<void> check(std::uint32_t unit, ByteView bytes) const;
  /// Verifies a unit whose bytes had this digest.
  Result<void> check_value(std::uint32_t unit, std::uint64_t found) const;

 private:
  ChunkNumber chunk_;
  std::span<const std::int64_t> values_;
  std::shared_ptr<const void> owner_;
};

/// A unit of a chunk that is stored uncompressed has this many bytes, the last one perhaps fewer.
inline constexpr std::uint32_t kRawUnit = 16 << 10;

/// Returns the number of units after unit 0: blocks, or parts of an uncompressed payload.
std::uint32_t block_units(const codec::ChunkDecoder& decoder);

/// Returns the stored offset of the first block. What is before it is one unit: header, block starts, dictionary.
std::uint64_t first_block_begin(const codec::ChunkDecoder& decoder);

/// Returns true if the chunk has units; otherwise the whole chunk is one.
bool has_units(const codec::ChunkDecoder& decoder);

/// Returns the digests of a chunk in memory, of which `bytes` are all.
std::vector<std::uint64_t> digests_of(ChunkNumber chunk, const codec::ChunkDecoder& decoder, ByteView bytes);
/// Returns the one digest of a chunk that has no units.
std::vector<std::uint64_t> digest_of_whole(ChunkNumber chunk, ByteView bytes);
/// Returns the digests of a chunk that begins at `at` in `source`. Memory: one block, or 1 MiB.
Result<std::vector<std::uint64_t>> digests_of(ChunkNumber chunk, const codec::ChunkDecoder& decoder,
                                              const ByteSource& source, FileOffset at);
/// Returns the digest of a range of a source that is one unit.
Result<std::uint64_t> digest_of_range(const ByteSource& source, FileOffset at, std::uint64_t length,
                                      std::uint64_t seed);

}  // namespace cframefs::frame
