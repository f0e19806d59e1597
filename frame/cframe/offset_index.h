// The index of a frame: for each chunk the place where it is stored, or its special value if it is not stored.
//
// The index is a chunk of little-endian 64-bit entries. open() parses that chunk's header and block starts. Entries are
// decoded a unit at a time (a block of the chunk, usually 2,048 entries) and cached in the IndexCache. If all entries
// are known to be equal, only that value is kept.
//
// Thread safety: immutable; const members may run concurrently. Ownership: shares source and cache.
// Units: entries and chunk numbers. Errors: corruption, unsupported, io; with the file offset of the index.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "codec/chunk_decoder.h"
#include "frame/cframe/index_cache.h"
#include "frame/io/byte_source.h"
#include "frame/io/range_buffer.h"

namespace cframefs::frame {

class OffsetIndex {
 public:
  /// Opens the index chunk at `at` in `source`. `limit`: the most bytes that the chunk may have. `windows`: a buffer of
  /// `source`.
  static Result<std::unique_ptr<const OffsetIndex>> open(std::shared_ptr<const ByteSource> source, FileOffset at,
                                                         std::uint64_t limit, RangeBuffer& windows,
                                                         std::shared_ptr<IndexCache> cache);
  ~OffsetIndex() { cache_->forget(owner_); }
  OffsetIndex(const OffsetIndex&) = delete;
  OffsetIndex& operator=(const OffsetIndex&) = delete;

  std::int64_t count() const { return count_; }
  /// Returns the bytes that the index chunk takes in the file.
  std::int32_t stored_bytes() const { return decoder_.header().cbytes; }

  /// Returns the value of all entries, or nullopt if the entries are not known to be equal.
  std::optional<std::int64_t> uniform() const { return uniform_; }

  /// Returns the number of entries after which the index repeats, or 0 if no period is known.
  std::int64_t period() const { return period_; }

  /// REQUIRES: 0 <= chunk < count().
  Result<std::int64_t> entry(std::int64_t chunk) const;

  /// The entries from `from` to the end of its unit. REQUIRES: 0 <= from < count(), not uniform().
  struct Piece {
    IndexCache::Block block;  // owns the entries
    std::span<const std::int64_t> entries;
  };
  Result<Piece> piece(std::int64_t from) const;

  /// Units of more entries would evict all others from the cache. Code that scans the index decodes such units into its
  /// own memory, with decode_unit().
  static constexpr std::int64_t kMaxCached = 128 << 10;

  /// The unit of `chunk` is the entries [unit_begin(), unit_end()).
  std::int64_t unit_begin(std::int64_t chunk) const { return chunk - chunk % unit_entries_; }
  std::int64_t unit_end(std::int64_t chunk) const { return std::min(count_, unit_begin(chunk) + unit_entries_); }
  using Entries = std::vector<std::int64_t, codec::UninitializedAllocator<std::int64_t>>;
  /// Decodes the unit of `chunk` into `entries`, bypassing the cache. REQUIRES: as entry().
  Result<void> decode_unit(std::int64_t chunk, Entries& entries) const;

  /// Returns the value of all entries in the unit of `chunk` if the stored bytes tell it without decoding, or nullopt.
  Result<std::optional<std::int64_t>> unit_value(std::int64_t chunk) const;

  /// Returns the first chunk at or after `from` whose entry is (`hole`) or is not (`!hole`) zeros or uninitialised, or
  /// count() if there is none.
  Result<std::int64_t> next(std::int64_t from, bool hole) const;

 private:
  struct Private {};

 public:
  /// Only for open().
  OffsetIndex(Private, std::shared_ptr<const ByteSource> source, FileOffset at, codec::ChunkDecoder decoder,
              std::shared_ptr<IndexCache> cache);

 private:
  void choose_unit();
  Result<void> detect_period();
  Result<IndexCache::Block> unit(std::uint32_t number) const;
  Result<IndexCache::Block> load_unit(std::uint32_t number) const;
  Result<void> check_sizes(std::uint32_t begin, std::uint32_t end) const;
  Result<void> check_size(std::uint32_t block) const;
  Result<void> decode_bytes(codec::DecodeContext& context, std::uint32_t begin, ByteSpan out) const;
  Result<void> decode_block(codec::DecodeContext& context, std::uint32_t block, ByteSpan out, ByteView reference) const;
  Error located(Error error) const;

  const std::shared_ptr<const ByteSource> source_;
  const FileOffset at_;
  const codec::ChunkDecoder decoder_;
  const std::shared_ptr<IndexCache> cache_;
  const std::uint64_t owner_;
  std::int64_t count_ = 0;
  std::uint32_t unit_entries_ = 1;
  bool unit_is_block_ = false;
  std::int64_t period_ = 0;              // see period()
  std::optional<std::int64_t> uniform_;  // see uniform()
};

}  // namespace cframefs::frame
