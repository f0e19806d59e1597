#include "frame/container/chunk_digests.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/core.h>

#include "frame/base/xxh3.h"

namespace cframefs::frame {
namespace {

using codec::ByteRange;
using codec::ChunkDecoder;
using codec::Failure;

/// Blocks that are shorter than this on average get no digests of their own, which would be longer than 1/128 of them.
constexpr std::uint64_t kLeastBlock = 1024;

/// A chunk of more units would have a page that is too long for readers (seal.md section 3).
constexpr std::uint32_t kMostUnits = std::uint32_t{1} << 19;

/// Bytes read at once.
constexpr std::uint64_t kReadAtOnce = std::uint64_t{1} << 20;

std::uint64_t unit_seed(ChunkNumber chunk, std::uint32_t unit) {
  constexpr unsigned kUnitBits = 24;
  return (static_cast<std::uint64_t>(chunk.value) << kUnitBits) + unit;
}

std::uint64_t stored_bytes(const ChunkDecoder& decoder) {
  return static_cast<std::uint64_t>(decoder.header().cbytes);
}

/// Returns true if the blocks lie side by side up to the end of the chunk, in any order.
bool are_side_by_side(const ChunkDecoder& decoder) {
  std::uint64_t begin = first_block_begin(decoder);
  std::vector<ByteRange> ranges;
  ranges.reserve(decoder.block_count());
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block)
    ranges.push_back(decoder.stored_range(block));
  std::sort(ranges.begin(), ranges.end(), [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  for (const ByteRange& range : ranges) {
    if (range.begin != begin) return false;
    begin = range.end;
  }
  return begin == stored_bytes(decoder);
}

/// Calls visit(unit, range) for each unit in turn, until it fails.
template <class Visit>
Result<void> for_each_unit(const ChunkDecoder& decoder, const Visit& visit) {
  if (!has_units(decoder)) return visit(0U, ByteRange{0, stored_bytes(decoder)});
  const std::uint64_t first = first_block_begin(decoder);
  if (auto done = visit(0U, ByteRange{0, first}); !done) return done;
  for (std::uint32_t block = 0; block < block_units(decoder); ++block) {
    ByteRange range = decoder.header().memcpyed ? ByteRange{} : decoder.stored_range(block);
    if (decoder.header().memcpyed) {
      range.begin = first + std::uint64_t{block} * kRawUnit;
      range.end = std::min(range.begin + kRawUnit, first + decoder.nbytes());
    }
    if (auto done = visit(block + 1, range); !done) return done;
  }
  return {};
}

}  // namespace

std::uint64_t ChunkDigests::seed(std::uint32_t unit) const {
  return unit_seed(chunk_, unit);
}

std::uint32_t block_units(const ChunkDecoder& decoder) {
  if (!decoder.header().memcpyed) return decoder.block_count();
  return (decoder.nbytes() + kRawUnit - 1) / kRawUnit;
}

std::uint64_t first_block_begin(const ChunkDecoder& decoder) {
  std::uint64_t begin = stored_bytes(decoder);
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block)
    begin = std::min(begin, decoder.stored_range(block).begin);
  return begin;
}

bool has_units(const ChunkDecoder& decoder) {
  const codec::ChunkHeader& header = decoder.header();
  if (header.special != codec::SpecialValue::none || header.vl_blocks || decoder.block_count() == 0) return false;
  const std::uint32_t units = block_units(decoder);
  if (units > kMostUnits || units * kLeastBlock > stored_bytes(decoder)) return false;
  return are_side_by_side(decoder);
}

Result<void> ChunkDigests::check_count(const ChunkDecoder& decoder) const {
  if (!any() || is_whole() || values_.size() == std::size_t{block_units(decoder)} + 1) return {};
  return codec::corrupt(fmt::format("the seal has {} digests for a chunk, whose header describes {} blocks",
                                    values_.size(), block_units(decoder)));
}

Result<void> ChunkDigests::check_value(std::uint32_t unit, std::uint64_t found) const {
  const auto sealed = static_cast<std::uint64_t>(values_[unit]);
  if (found == sealed) return {};
  const std::string what = is_whole() ? "the chunk" : unit == 0 ? "its header" : fmt::format("block {}", unit - 1);
  return codec::corrupt(fmt::format("{} has digest {:016x}, sealed as {:016x}", what, found, sealed));
}

Result<void> ChunkDigests::check(std::uint32_t unit, ByteView bytes) const {
  return check_value(unit, xxh3(bytes, unit_seed(chunk_, unit)));
}

std::vector<std::uint64_t> digests_of(ChunkNumber chunk, const ChunkDecoder& decoder, ByteView bytes) {
  std::vector<std::uint64_t> digests;
  static_cast<void>(for_each_unit(decoder, [&](std::uint32_t unit, const ByteRange& range) -> Result<void> {
    digests.push_back(xxh3(bytes.subspan(range.begin, range.size()), unit_seed(chunk, unit)));
    return {};
  }));
  return digests;
}

std::vector<std::uint64_t> digest_of_whole(ChunkNumber chunk, ByteView bytes) {
  return {xxh3(bytes, unit_seed(chunk, 0))};
}

Result<std::uint64_t> digest_of_range(const ByteSource& source, FileOffset at, std::uint64_t length,
                                      std::uint64_t seed) {
  if (length <= kReadAtOnce) {
    codec::UninitializedBytes all(static_cast<std::size_t>(length));
    if (auto read = source.read(at, all); !read) return Failure(read.error());
    return xxh3(all, seed);
  }
  RunningXxh3 digest(seed);
  codec::UninitializedBytes piece(kReadAtOnce);
  for (std::uint64_t done = 0; done < length;) {
    const ByteSpan part =
        ByteSpan(piece).first(static_cast<std::size_t>(std::min<std::uint64_t>(piece.size(), length - done)));
    if (auto read = source.read(FileOffset{at.value + done}, part); !read) return Failure(read.error());
    digest.add(part);
    done += part.size();
  }
  return digest.value();
}

Result<std::vector<std::uint64_t>> digests_of(ChunkNumber chunk, const ChunkDecoder& decoder, const ByteSource& source,
                                              FileOffset at) {
  std::vector<std::uint64_t> digests;
  auto done = for_each_unit(decoder, [&](std::uint32_t unit, const ByteRange& range) -> Result<void> {
    const auto digest =
        digest_of_range(source, FileOffset{at.value + range.begin}, range.size(), unit_seed(chunk, unit));
    if (!digest) return Failure(digest.error());
    digests.push_back(*digest);
    return {};
  });
  if (!done) return Failure(done.error());
  return digests;
}

}  // namespace cframefs::frame
