#include "frame/cframe/offset_index.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_prefix.h"

namespace cframefs::frame {

namespace {

using codec::corrupt;
using codec::Failure;
using codec::SpecialValue;

constexpr std::uint32_t kEntryBytes = sizeof(std::int64_t);

/// Entries of a unit if the blocks of the index do not hold whole entries.
constexpr std::uint32_t kDefaultUnit = 2048;

/// A block of the index is decoded whole. Blocks of up to this many uncompressed bytes are always allowed; they fit
/// into the cache.
constexpr std::uint64_t kFreeIndexBlock = std::uint64_t{4} << 20;
/// Longer blocks may have this many times their stored bytes. Otherwise a few stored bytes could claim gigabytes.
constexpr std::uint64_t kMaxIndexExpansion = 256;

bool is_hole(std::int64_t entry) {
  return entry == layout::kZerosEntry || entry == layout::kUninitialisedEntry;
}

}  // namespace

Result<std::unique_ptr<const OffsetIndex>> OffsetIndex::open(std::shared_ptr<const ByteSource> source, FileOffset at,
                                                             std::uint64_t limit, RangeBuffer& windows,
                                                             std::shared_ptr<IndexCache> cache) {
  const auto fail = [&](Error error) {
    error.reason = "index: " + error.reason;
    if (!error.file_offset) error.file_offset = source->base_offset().value + at.value;
    return Failure(std::move(error));
  };
  // One read covers header and block starts of an index of up to a million chunks.
  constexpr std::size_t kIndexWindow = 4096;
  if (auto done = windows.load(at, static_cast<std::size_t>(std::min<std::uint64_t>(limit, kIndexWindow))); !done) {
    return fail(done.error());
  }
  const auto first = static_cast<std::size_t>(std::min<std::uint64_t>(limit, codec::kExtendedHeaderLength));
  const auto start = windows.get(at, first);
  if (!start) return fail(start.error());
  const auto header = codec::parse_chunk_header(*start);
  if (!header) return fail(header.error());
  if (static_cast<std::uint64_t>(header->cbytes) > limit) {
    return fail(corrupt(fmt::format("chunk of {} bytes, at most {} can be", header->cbytes, limit)).value());
  }
  if (header->nbytes % kEntryBytes != 0) {
    return fail(corrupt(fmt::format("uncompressed length {} is not a multiple of 8", header->nbytes)).value());
  }
  auto decoder = parse_chunk(*source, at, *header, windows.peek(at, static_cast<std::size_t>(header->cbytes)));
  if (!decoder) return fail(decoder.error());
  auto index = std::make_unique<OffsetIndex>(Private{}, source, at, std::move(*decoder), std::move(cache));
  index->choose_unit();
  if (auto done = index->detect_period(); !done) return Failure(done.error());
  return index;
}

OffsetIndex::OffsetIndex(Private, std::shared_ptr<const ByteSource> source, FileOffset at, codec::ChunkDecoder decoder,
                         std::shared_ptr<IndexCache> cache)
    : source_(std::move(source)),
      at_(at),
      decoder_(std::move(decoder)),
      cache_(std::move(cache)),
      owner_(cache_->new_owner()),
      count_(decoder_.nbytes() / kEntryBytes) {}

void OffsetIndex::choose_unit() {
  unit_entries_ = kDefaultUnit;
  if (decoder_.block_count() == 0 || decoder_.header().vl_blocks) return;
  const std::uint64_t block = decoder_.block_range(0).size();
  unit_is_block_ = block % kEntryBytes == 0;
  if (unit_is_block_) unit_entries_ = static_cast<std::uint32_t>(block / kEntryBytes);
}

/// Special chunks are periodic. If the value has 1, 2, 4 or 8 bytes, the period is 1 entry. Otherwise the period is the
/// smallest number of entries whose bytes are a whole number of values.
Result<void> OffsetIndex::detect_period() {
  if (count_ == 0 || decoder_.header().special == SpecialValue::none) return {};
  period_ = 1;
  if (decoder_.header().special == SpecialValue::repeated) {
    const std::uint32_t width = static_cast<std::uint32_t>(decoder_.header().cbytes) - codec::kExtendedHeaderLength;
    period_ = width / std::gcd(width, kEntryBytes);
  }
  if (period_ != 1) return {};
  const auto first = entry(0);
  if (!first) return Failure(first.error());
  uniform_ = *first;
  return {};
}

Result<std::int64_t> OffsetIndex::entry(std::int64_t chunk) const {
  if (uniform_) return *uniform_;
  const auto number = static_cast<std::uint64_t>(chunk);
  const auto of_unit = static_cast<std::uint32_t>(number / unit_entries_);
  // A block of one repeated entry is not decoded: it would evict all others from the cache.
  if (unit_is_block_ && unit_entries_ > kMaxCached) {
    if (auto fits = check_size(of_unit); !fits) return Failure(located(fits.error()));
    const auto value = unit_value(chunk);
    if (!value) return Failure(located(value.error()));
    if (*value) return **value;
  }
  const auto block = unit(of_unit);
  if (!block) return Failure(block.error());
  return (**block)[number % unit_entries_];
}

Result<OffsetIndex::Piece> OffsetIndex::piece(std::int64_t from) const {
  const auto number = static_cast<std::uint64_t>(from);
  auto block = unit(static_cast<std::uint32_t>(number / unit_entries_));
  if (!block) return Failure(block.error());
  const auto entries = std::span(**block).subspan(number % unit_entries_);
  return Piece{std::move(*block), entries};
}

Result<std::optional<std::int64_t>> OffsetIndex::unit_value(std::int64_t chunk) const {
  constexpr std::optional<std::int64_t> kNotKnown;
  // Bytes of eight streams of runs, and some room for bytes that may follow the streams.
  constexpr std::size_t kMaxStored = 128;
  if (!unit_is_block_) return kNotKnown;
  const auto block = static_cast<std::uint32_t>(chunk / unit_entries_);
  const codec::ByteRange range = decoder_.stored_range(block);
  std::array<std::uint8_t, kMaxStored> bytes{};
  if (range.size() > bytes.size()) {
    const bool is_hole =
        decoder_.header().memcpyed && source_->zeros(FileOffset{at_.value + range.begin}) >= range.size();
    return is_hole ? std::optional<std::int64_t>(0) : kNotKnown;
  }
  const ByteSpan stored = ByteSpan(bytes).first(static_cast<std::size_t>(range.size()));
  if (auto done = source_->read(FileOffset{at_.value + range.begin}, stored); !done) return Failure(done.error());
  const std::vector<std::uint8_t> repeated = decoder_.repeated_bytes(block, stored);
  if (repeated.empty() || kEntryBytes % repeated.size() != 0) return kNotKnown;
  std::array<std::uint8_t, kEntryBytes> entry{};
  for (std::size_t i = 0; i < entry.size(); ++i)
    entry[i] = repeated[i % repeated.size()];
  return std::optional(codec::load_le<std::int64_t>(entry.data()));
}

Result<std::int64_t> OffsetIndex::next(std::int64_t from, bool hole) const {
  if (from >= count_) return count_;
  if (uniform_) return is_hole(*uniform_) == hole ? from : count_;
  // An entry that does not occur within one period does not occur at all.
  const std::int64_t end = period_ > 0 && period_ < count_ - from ? from + period_ : count_;
  Entries large;
  while (from < end) {
    const auto value = unit_value(from);
    if (!value) return Failure(located(value.error()));
    if (*value) {
      if (is_hole(**value) == hole) return from;
      from = unit_end(from);
      continue;
    }
    Piece piece;
    if (unit_entries_ > kMaxCached) {
      if (auto done = decode_unit(from, large); !done) return Failure(done.error());
      piece.entries = std::span<const std::int64_t>(large).subspan(static_cast<std::size_t>(from - unit_begin(from)));
    } else {
      auto there = this->piece(from);
      if (!there) return Failure(there.error());
      piece = std::move(*there);
    }
    const auto found = std::find_if(piece.entries.begin(), piece.entries.end(),
                                    [hole](std::int64_t entry) { return is_hole(entry) == hole; });
    from += found - piece.entries.begin();
    if (found != piece.entries.end()) return from;
  }
  return count_;
}

Result<IndexCache::Block> OffsetIndex::unit(std::uint32_t number) const {
  return cache_->get(owner_, number, [this, number] { return load_unit(number); });
}

Result<IndexCache::Block> OffsetIndex::load_unit(std::uint32_t number) const {
  const std::uint64_t first = std::uint64_t{number} * unit_entries_;
  const auto entries =
      static_cast<std::size_t>(std::min<std::uint64_t>(unit_entries_, static_cast<std::uint64_t>(count_) - first));
  const auto begin = static_cast<std::uint32_t>(first * kEntryBytes);
  const auto end = static_cast<std::uint32_t>(begin + entries * kEntryBytes);
  if (auto fits = check_sizes(begin, end); !fits) return Failure(fits.error());
  // The block is decoded directly into the memory that the cache keeps.
  auto values = std::make_shared<std::vector<std::int64_t>>(entries);
  const auto context = cache_->contexts().acquire();
  if (auto done = decode_bytes(*context, begin, codec::bytes_of(std::span(*values))); !done)
    return Failure(located(done.error()));
  codec::from_little_endian(std::span(*values));
  return IndexCache::Block(std::move(values));
}

Result<void> OffsetIndex::decode_unit(std::int64_t chunk, Entries& entries) const {
  const std::int64_t first = unit_begin(chunk);
  const auto begin = static_cast<std::uint32_t>(first * kEntryBytes);
  const auto end = static_cast<std::uint32_t>(unit_end(chunk) * kEntryBytes);
  if (auto fits = check_sizes(begin, end); !fits) return fits;
  entries.resize((end - begin) / kEntryBytes);
  const auto context = cache_->contexts().acquire();
  if (auto done = decode_bytes(*context, begin, codec::bytes_of(std::span(entries))); !done)
    return Failure(located(done.error()));
  codec::from_little_endian(std::span(entries));
  return {};
}

/// Calls check_size() for all blocks that uncompressed bytes [begin, end) need.
Result<void> OffsetIndex::check_sizes(std::uint32_t begin, std::uint32_t end) const {
  if (decoder_.needs_reference()) {
    if (auto fits = check_size(0); !fits) return Failure(located(fits.error()));
  }
  for (std::uint32_t block = decoder_.block_at(begin); block <= decoder_.block_at(end - 1); ++block) {
    if (auto fits = check_size(block); !fits) return Failure(located(fits.error()));
  }
  return {};
}

/// Returns unsupported if the block is too large to decode. Called before its memory is allocated.
Result<void> OffsetIndex::check_size(std::uint32_t block) const {
  const std::uint64_t plain = decoder_.block_range(block).size();
  if (plain <= std::max(kFreeIndexBlock, kMaxIndexExpansion * decoder_.stored_range(block).size())) return {};
  return codec::unsupported(fmt::format("block of {} uncompressed bytes is too large for its {} stored bytes", plain,
                                        decoder_.stored_range(block).size()));
}

Result<void> OffsetIndex::decode_bytes(codec::DecodeContext& context, std::uint32_t begin, ByteSpan out) const {
  std::vector<std::uint8_t> reference;
  if (decoder_.needs_reference()) {
    reference.resize(decoder_.block_range(0).size());
    if (auto done = decode_block(context, 0, reference, {}); !done) return done;
  }
  std::vector<std::uint8_t> whole;
  std::uint64_t done = 0;
  while (done < out.size()) {
    const std::uint32_t block = decoder_.block_at(static_cast<std::uint32_t>(begin + done));
    const codec::ByteRange range = decoder_.block_range(block);
    const std::uint64_t skip = begin + done - range.begin;
    const std::uint64_t count = std::min<std::uint64_t>(range.size() - skip, out.size() - done);
    const ByteSpan target = out.subspan(done, count);
    if (count == range.size()) {
      if (auto decoded = decode_block(context, block, target, reference); !decoded) return decoded;
    } else {
      whole.resize(range.size());
      if (auto decoded = decode_block(context, block, whole, reference); !decoded) return decoded;
      std::copy_n(whole.begin() + static_cast<std::ptrdiff_t>(skip), count, target.begin());
    }
    done += count;
  }
  return {};
}

Result<void> OffsetIndex::decode_block(codec::DecodeContext& context, std::uint32_t block, ByteSpan out,
                                       ByteView reference) const {
  const codec::ByteRange range = decoder_.stored_range(block);
  const ByteSpan stored = context.scratch(codec::DecodeContext::Slot::stored, range.size()).first(range.size());
  if (auto done = source_->read(FileOffset{at_.value + range.begin}, stored); !done) return done;
  return decoder_.decode_block(context, block, stored, out, reference);
}

Error OffsetIndex::located(Error error) const {
  error.reason = "index: " + error.reason;
  if (!error.file_offset) error.file_offset = source_->base_offset().value + at_.value;
  return error;
}

}  // namespace cframefs::frame
