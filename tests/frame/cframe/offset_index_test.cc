// The index: entries of every kind of index chunk are decoded a unit at a time, and a few bytes that represent millions
// of chunks cost nothing.
#include "frame/cframe/offset_index.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "frame/cframe/frame_layout.h"
#include "tests/support/frame_builder.h"
#include "tests/support/memory_meter.h"

namespace cframefs {
namespace {

using frame::OffsetIndex;
using frame::layout::kNanEntry;
using frame::layout::kUninitialisedEntry;
using frame::layout::kZerosEntry;
using test::Bytes;

struct OpenedIndex {
  std::shared_ptr<frame::IndexCache> cache = std::make_shared<frame::IndexCache>();
  codec::Result<std::unique_ptr<const OffsetIndex>> index = codec::corrupt("not opened");
};

OpenedIndex open_index(Bytes chunk, std::uint64_t limit) {
  OpenedIndex opened;
  const std::shared_ptr<const frame::ByteSource> source = frame::memory_source(std::move(chunk));
  frame::RangeBuffer windows(*source);
  opened.index = OffsetIndex::open(source, frame::FileOffset{0}, limit, windows, opened.cache);
  return opened;
}

OpenedIndex open_index(const Bytes& chunk) {
  return open_index(chunk, chunk.size());
}

Bytes as_bytes(const std::vector<std::int64_t>& entries) {
  Bytes bytes(entries.size() * 8);
  for (std::size_t i = 0; i < entries.size(); ++i)
    codec::store_le(&bytes[i * 8], entries[i]);
  return bytes;
}

Bytes value_bytes(std::int64_t value) {
  return as_bytes({value});
}

TEST(OffsetIndex, ReadsEntriesInBlocksOfAnySize) {
  EXPECT_TRUE(rc::check("each entry", [] {
    std::vector<std::int64_t> entries(*rc::gen::inRange<std::size_t>(1, 3000));
    for (std::size_t i = 0; i < entries.size(); ++i)
      entries[i] = static_cast<std::int64_t>(i * i * 977);
    // Blocks of whole entries, blocks that cut entries, and blocks smaller than an entry.
    const auto blocksize = *rc::gen::inRange<std::uint32_t>(1, 5000);
    const OpenedIndex opened = open_index(test::raw_block_chunk(as_bytes(entries), blocksize));
    RC_ASSERT(opened.index.has_value());
    RC_ASSERT((*opened.index)->count() == static_cast<std::int64_t>(entries.size()));
    for (std::size_t i = 0; i < entries.size(); i += 1 + i % 13) {
      const auto entry = (*opened.index)->entry(static_cast<std::int64_t>(i));
      RC_ASSERT(entry.has_value());
      RC_ASSERT(*entry == entries[i]);
    }
  }));
}

/// Some bytes, followed by a hole.
class HoleSource final : public frame::ByteSource {
 public:
  HoleSource(Bytes bytes, std::uint64_t size) : bytes_(std::move(bytes)), size_(size) {}
  std::uint64_t size() const override { return size_; }
  codec::Result<void> read(frame::FileOffset at, codec::ByteSpan into) const override {
    for (std::size_t i = 0; i < into.size(); ++i)
      into[i] = at.value + i < bytes_.size() ? bytes_[at.value + i] : 0;
    return {};
  }

 private:
  const Bytes bytes_;
  const std::uint64_t size_;
};

TEST(OffsetIndex, StartsOfBlocksThatAreAHoleTakeNoMemory) {
  constexpr std::int32_t kBlocks = 1 << 27;
  constexpr std::int32_t kLength = 32 + 4 * kBlocks + 100;
  Bytes header(32);
  header[0] = 5;
  header[1] = 1;
  header[2] = 0x15 | 1 << 5;
  header[3] = 8;
  codec::store_le<std::int32_t>(&header[4], 8 * kBlocks);
  codec::store_le<std::int32_t>(&header[8], 8);
  codec::store_le<std::int32_t>(&header[12], kLength);
  const std::shared_ptr<const frame::ByteSource> source = std::make_shared<HoleSource>(header, kLength);
  frame::RangeBuffer windows(*source);
  const std::size_t idle = test::reset_peak();
  const auto index =
      OffsetIndex::open(source, frame::FileOffset{0}, kLength, windows, std::make_shared<frame::IndexCache>());
  EXPECT_LT(test::peak_bytes() - idle, std::size_t{1} << 20);
  ASSERT_FALSE(index);
  EXPECT_EQ(index.error().kind, codec::ErrorKind::corruption);
}

/// Counts the bytes read.
class CountedSource final : public frame::ByteSource {
 public:
  explicit CountedSource(Bytes bytes) : source_(frame::memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return source_->size(); }
  codec::Result<void> read(frame::FileOffset at, codec::ByteSpan into) const override {
    read_bytes += into.size();
    return source_->read(at, into);
  }
  mutable std::uint64_t read_bytes = 0;

 private:
  const std::unique_ptr<frame::ByteSource> source_;
};

/// Makes an index of blocks of 4 MiB. Each block is eight streams of runs, the bytes of `value`.
Bytes index_of_runs(std::int64_t value, std::size_t blocks) {
  Bytes block;
  for (const std::uint8_t byte : value_bytes(value)) {
    Bytes stream(4);
    codec::store_le(stream.data(), -std::int32_t{byte});
    if (byte != 0) stream.push_back(1);
    codec::append(block, stream);
  }
  constexpr std::int32_t kBlock = 4 << 20;
  Bytes chunk(32 + 4 * blocks);
  chunk[0] = 5;
  chunk[1] = 1;
  chunk[2] = 0x05 | 1 << 5;
  chunk[3] = 8;
  chunk[16 + 5] = 1;  // shuffle
  codec::store_le(&chunk[4], static_cast<std::int32_t>(blocks) * kBlock);
  codec::store_le(&chunk[8], kBlock);
  for (std::size_t i = 0; i < blocks; ++i) {
    codec::store_le(&chunk[32 + 4 * i], static_cast<std::int32_t>(chunk.size()));
    codec::append(chunk, block);
  }
  codec::store_le(&chunk[12], static_cast<std::int32_t>(chunk.size()));
  return chunk;
}

TEST(OffsetIndex, BlocksOfRunsAreScannedWithoutDecoding) {
  constexpr std::size_t kBlocks = 511;
  const Bytes chunk = index_of_runs(kUninitialisedEntry, kBlocks);
  const auto source = std::make_shared<CountedSource>(chunk);
  frame::RangeBuffer windows(*source);
  const auto cache = std::make_shared<frame::IndexCache>();
  const auto index = OffsetIndex::open(source, frame::FileOffset{0}, chunk.size(), windows, cache);
  ASSERT_TRUE(index) << codec::describe(index.error());
  const std::size_t idle = test::reset_peak();
  source->read_bytes = 0;
  EXPECT_EQ((*index)->entry((*index)->count() - 1), kUninitialisedEntry);
  EXPECT_EQ((*index)->next(5, true), 5);
  EXPECT_EQ((*index)->next(5, false), (*index)->count());
  const auto value = (*index)->unit_value(0);
  ASSERT_TRUE(value);
  EXPECT_EQ(*value, std::optional(kUninitialisedEntry));
  EXPECT_LE(test::peak_bytes() - idle, 100'000U) << "blocks were decoded";
  EXPECT_LE(source->read_bytes, 2 * chunk.size());
}

TEST(OffsetIndex, PlainChunksAreReadInPieces) {
  std::vector<std::int64_t> entries(100000);
  for (std::size_t i = 0; i < entries.size(); ++i)
    entries[i] = static_cast<std::int64_t>(i) * 3;
  const OpenedIndex opened = open_index(test::plain_index(entries));
  ASSERT_TRUE(opened.index);
  EXPECT_EQ((*opened.index)->entry(99999), 299997);
  EXPECT_LT(opened.cache->bytes(), 100000U) << "the whole index was decoded";
}

TEST(OffsetIndex, TheNextHoleIsFoundAsByALinearSearch) {
  EXPECT_TRUE(rc::check("next hole and next data", [] {
    const auto kinds =
        *rc::gen::container<std::vector<int>>(rc::gen::weightedElement<int>({{5, 0}, {5, 1}, {1, 2}, {1, 3}}));
    std::vector<std::int64_t> entries;
    for (const int kind : kinds) {
      const std::size_t run = *rc::gen::inRange<std::size_t>(1, 900);
      const std::int64_t values[] = {1234, kZerosEntry, kUninitialisedEntry, kNanEntry};
      entries.insert(entries.end(), run, values[kind]);
    }
    if (entries.empty()) entries.push_back(0);
    const OpenedIndex opened = open_index(test::raw_block_chunk(as_bytes(entries), 4096));
    RC_ASSERT(opened.index.has_value());
    const auto is_hole = [&](std::size_t i) { return entries[i] == kZerosEntry || entries[i] == kUninitialisedEntry; };
    const auto from = *rc::gen::inRange<std::size_t>(0, entries.size() + 1);
    for (const bool hole : {true, false}) {
      std::size_t expected = from;
      while (expected < entries.size() && is_hole(expected) != hole)
        ++expected;
      const auto found = (*opened.index)->next(static_cast<std::int64_t>(from), hole);
      RC_ASSERT(found.has_value());
      RC_ASSERT(*found == static_cast<std::int64_t>(expected));
    }
  }));
}

TEST(OffsetIndex, ARepeatedValueRepresentsMillionsOfChunksAtNoCost) {
  const std::int32_t nbytes = (INT32_MAX - 32) / 8 * 8;
  const std::size_t before = test::reset_peak();
  const OpenedIndex opened = open_index(test::repeated_chunk(value_bytes(kZerosEntry), nbytes));
  ASSERT_TRUE(opened.index);
  const OffsetIndex& index = **opened.index;
  EXPECT_EQ(index.count(), nbytes / 8);
  EXPECT_EQ(index.entry(0), kZerosEntry);
  EXPECT_EQ(index.entry(index.count() - 1), kZerosEntry);
  EXPECT_EQ(index.next(0, true), 0);
  EXPECT_EQ(index.next(7, false), index.count());
  EXPECT_LT(test::peak_bytes() - before, 1U << 20);
}

TEST(OffsetIndex, ARepeatedPatternOfSeveralEntriesIsNotOneEntry) {
  const OpenedIndex opened = open_index(test::repeated_chunk(as_bytes({5, kZerosEntry}), 1600));
  ASSERT_TRUE(opened.index);
  EXPECT_EQ((*opened.index)->entry(198), 5);
  EXPECT_EQ((*opened.index)->entry(199), kZerosEntry);
  EXPECT_EQ((*opened.index)->next(0, true), 1);
  EXPECT_EQ((*opened.index)->next(1, false), 2);
}

TEST(OffsetIndex, ALongPatternIsSearchedOnceAndNotForItsMillionsOfRepetitions) {
  for (const std::size_t width : {std::size_t{3}, std::size_t{24}, std::size_t{4099}}) {
    const auto repetitions = static_cast<std::int32_t>((std::size_t{1} << 30) / width / 8 * 8);
    const Bytes value(width, 1);  // entries 0x0101010101010101, none of them a hole
    const OpenedIndex opened = open_index(test::repeated_chunk(value, repetitions * static_cast<std::int32_t>(width)));
    ASSERT_TRUE(opened.index) << describe(opened.index.error());
    const OffsetIndex& index = **opened.index;
    for (int i = 0; i < 100; ++i)
      ASSERT_EQ(index.next(i, true), index.count());
    EXPECT_LT(opened.cache->bytes(), std::size_t{1} << 20);
  }
}

TEST(OffsetIndex, SpecialZerosMeanOffsetZero) {
  Bytes chunk = test::plain_chunk({}, 8);
  codec::store_le(&chunk[4], std::int32_t{800});
  codec::store_le(&chunk[8], std::int32_t{800});
  chunk[2] = 0x05;
  chunk[31] = 1 << 4;
  const OpenedIndex opened = open_index(chunk);
  ASSERT_TRUE(opened.index) << describe(opened.index.error());
  EXPECT_EQ((*opened.index)->entry(99), 0);
  EXPECT_EQ((*opened.index)->next(0, true), 100);
}

TEST(OffsetIndex, ALengthThatIsNotAMultipleOfEightIsRefused) {
  EXPECT_FALSE(open_index(test::plain_chunk(Bytes(17), 8)).index);
}

TEST(OffsetIndex, AChunkLongerThanTheLimitIsRefused) {
  const Bytes chunk = test::plain_index({1, 2, 3});
  EXPECT_TRUE(open_index(chunk, chunk.size()).index);
  for (std::size_t limit = 0; limit < chunk.size(); ++limit)
    EXPECT_FALSE(open_index(chunk, limit).index) << limit;
}

TEST(OffsetIndex, ABlockWithAnExcessiveRatioIsRefused) {
  // 256 MB of zeros in one block of one empty stream.
  const std::int32_t nbytes = 256 << 20;
  Bytes chunk = test::raw_block_chunk(Bytes(8), 8);
  codec::store_le(&chunk[4], nbytes);
  codec::store_le(&chunk[8], nbytes);
  codec::store_le(&chunk[36], std::int32_t{0});
  const std::size_t before = test::reset_peak();
  const OpenedIndex opened = open_index(chunk);
  ASSERT_TRUE(opened.index) << describe(opened.index.error());
  const auto entry = (*opened.index)->entry(0);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().kind, codec::ErrorKind::unsupported);
  EXPECT_LT(test::peak_bytes() - before, 1U << 20);
}

TEST(OffsetIndex, ErrorsOfDamageHaveTheFileOffset) {
  Bytes chunk = test::raw_block_chunk(as_bytes({1, 2, 3}), 24);
  codec::store_le(&chunk[36], std::int32_t{-300});  // an invalid length of a stream
  const OpenedIndex opened = open_index(chunk);
  ASSERT_TRUE(opened.index);
  const auto entry = (*opened.index)->entry(1);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().kind, codec::ErrorKind::corruption);
  EXPECT_EQ(entry.error().file_offset, 0U);
  EXPECT_TRUE(entry.error().reason.starts_with("index: ")) << entry.error().reason;
}

}  // namespace
}  // namespace cframefs
