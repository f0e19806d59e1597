// The index of a frame: for each chunk where it is stored, or what it is made of if it is not.
//
// The index is a chunk of little-endian 64-bit entries. Opening parses that chunk's header and block starts; entries
// decode a unit at a time (a block of the chunk, usually 2,048 entries) and live in the IndexCache. Where the whole
// index repeats one value, that value is all there is, however many chunks it stands for.
//
// Thread safety: immutable, const members may run at once. Ownership: shares source and cache.
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
  /// `at`: of the index chunk in `source`; `limit`: bytes from there that may belong to it. `windows` are of `source`.
  static Result<std::unique_ptr<const OffsetIndex>> open(std::shared_ptr<const ByteSource> source, FileOffset at,
                                                         std::uint64_t limit, RangeBuffer& windows,
                                                         std::shared_ptr<IndexCache> cache);
  ~OffsetIndex() { cache_->forget(owner_); }
  OffsetIndex(const OffsetIndex&) = delete;
  OffsetIndex& operator=(const OffsetIndex&) = delete;

  std::int64_t count() const { return count_; }
  /// What the index chunk takes in the file.
  std::int32_t stored_bytes() const { return decoder_.header().cbytes; }

  /// The value of all entries, where the index is known to be nothing but that.
  std::optional<std::int64_t> uniform() const { return uniform_; }

  /// After so many entries the index is known to repeat itself; 0: it is not.
  std::int64_t period() const { return period_; }

  /// REQUIRES: 0 <= chunk < count().
  Result<std::int64_t> entry(std::int64_t chunk) const;

  /// The entries from one on, as far as they are decoded together. REQUIRES: 0 <= from < count(), not uniform().
  struct Piece {
    IndexCache::Block block;  // keeps the entries
    std::span<const std::int64_t> entries;
  };
  Result<Piece> piece(std::int64_t from) const;

  /// Units of more entries would push all others out of the cache: what looks through the index decodes them into
  /// memory of its own.
  static constexpr std::int64_t kMaxCached = 128 << 10;

  /// The entries that are decoded together with `chunk`: [unit_begin(), unit_end()).
  std::int64_t unit_begin(std::int64_t chunk) const { return chunk - chunk % unit_entries_; }
  std::int64_t unit_end(std::int64_t chunk) const { return std::min(count_, unit_begin(chunk) + unit_entries_); }
  using Entries = std::vector<std::int64_t, codec::UninitializedAllocator<std::int64_t>>;
  /// Decodes them into the caller's memory, past the cache. REQUIRES: as entry().
  Result<void> decode_unit(std::int64_t chunk, Entries& entries) const;

  /// The value of all entries that are decoded together with `chunk`, where that shows without decoding them.
  Result<std::optional<std::int64_t>> unit_value(std::int64_t chunk) const;

  /// The first chunk at or after `from` whose entry says zeros or uninitialised (`hole`), or does not; count() if there
  /// is none.
  Result<std::int64_t> next(std::int64_t from, bool hole) const;

 private:
  struct Private {};

 public:
  /// For open() alone.
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
  std::int64_t period_ = 0;              // after so many entries the index repeats itself; 0: not known to
  std::optional<std::int64_t> uniform_;  // every entry is this one
};

}  // namespace cframefs::frame
