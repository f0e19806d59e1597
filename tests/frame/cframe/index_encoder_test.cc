// OffsetIndex reads the entries that IndexEncoder encoded.
#include "frame/cframe/index_encoder.h"

#include <random>

#include <gtest/gtest.h>

#include "codec/chunk_decoder.h"
#include "frame/cframe/frame_layout.h"
#include "frame/cframe/offset_index.h"

namespace cframefs {
namespace {

using frame::IndexEncoder;
using Entries = std::vector<std::int64_t>;

Entries decoded(const std::vector<std::uint8_t>& chunk) {
  const auto length = chunk.size();
  std::shared_ptr<const frame::ByteSource> source = frame::memory_source(chunk);
  frame::RangeBuffer windows(*source);
  const auto index =
      frame::OffsetIndex::open(source, frame::FileOffset{0}, length, windows, std::make_shared<frame::IndexCache>());
  EXPECT_TRUE(index) << (index ? "" : codec::describe(index.error()));
  Entries entries;
  for (std::int64_t i = 0; index && i < (*index)->count(); ++i)
    entries.push_back((*index)->entry(i).value_or(-12345));
  return entries;
}

std::vector<std::uint8_t> encoded(const Entries& entries) {
  IndexEncoder encoder;
  for (const std::int64_t entry : entries)
    encoder.append(entry);
  EXPECT_EQ(encoder.count(), static_cast<std::int64_t>(entries.size()));
  return encoder.finish();
}

/// Returns realistic entries: rising offsets with special entries between them.
Entries some_entries(std::size_t count, unsigned seed) {
  std::mt19937 random(seed);
  Entries entries;
  std::int64_t at = 0;
  for (std::size_t i = 0; i < count; ++i) {
    const unsigned kind = random() % 20;
    if (kind == 0) {
      entries.push_back(frame::layout::kZerosEntry);
    } else if (kind == 1) {
      entries.push_back(frame::layout::kNanEntry);
    } else {
      entries.push_back(at);
      at += 32 + static_cast<std::int64_t>(random() % 5000);
    }
  }
  return entries;
}

TEST(IndexEncoderTest, EntriesOfAnyCountAreReadBack) {
  for (const std::size_t count : {1U, 2U, 3U, 4U, 5U, 31U, 100U, 2047U, 2048U, 2049U, 2080U, 4096U, 5000U, 20'000U}) {
    const Entries entries = some_entries(count, static_cast<unsigned>(count));
    const auto chunk = encoded(entries);
    EXPECT_EQ(decoded(chunk), entries) << count;
    EXPECT_LE(chunk.size(), entries.size() * 8 + 32 + 64) << count;
  }
}

TEST(IndexEncoderTest, IncompressibleEntriesAreReadBack) {
  std::mt19937_64 random(1);
  for (const std::size_t count : {3U, 50U, 2048U, 2100U, 6000U}) {
    Entries entries(count);
    for (std::int64_t& entry : entries)
      entry = static_cast<std::int64_t>(random());
    EXPECT_EQ(decoded(encoded(entries)), entries) << count;
  }
}

TEST(IndexEncoderTest, TheIndexOfAMillionChunksIsShort) {
  const auto chunk = encoded(some_entries(1'000'000, 1));
  EXPECT_LT(chunk.size(), std::size_t{4} << 20);
}

TEST(IndexEncoderTest, EqualEntriesTakeFortyBytes) {
  for (const std::int64_t count : {4, 2048, 2049, 10'000'000}) {
    IndexEncoder encoder;
    encoder.append_run(frame::layout::kZerosEntry, count);
    EXPECT_EQ(encoder.count(), count);
    const auto chunk = encoder.finish();
    EXPECT_EQ(chunk.size(), 40U);
    const auto header = codec::parse_chunk_header(chunk);
    ASSERT_TRUE(header);
    EXPECT_EQ(header->nbytes, count * 8);
  }
}

TEST(IndexEncoderTest, RunsAndPiecesEqualSingleEntries) {
  Entries entries = some_entries(3000, 4);
  entries.insert(entries.begin() + 1000, 9000, frame::layout::kZerosEntry);
  IndexEncoder encoder;
  encoder.append_all(std::span(entries).first(1500));
  encoder.append_all(std::span(entries).subspan(1500));
  EXPECT_EQ(encoder.finish(), encoded(entries));
}

TEST(IndexEncoderTest, ReusesBlocksOfAnotherIndex) {
  Entries entries = some_entries(6000, 5);
  IndexEncoder first;
  first.append_all(entries);
  static_cast<void>(first.finish());
  const auto blocks = first.take_blocks();
  ASSERT_EQ(blocks.size(), 2U);
  IndexEncoder second;
  second.append_block(blocks[0]);
  entries[3000] = 7;
  second.append_all(std::span(entries).subspan(2048));
  EXPECT_EQ(decoded(second.finish()), entries);
}

}  // namespace
}  // namespace cframefs
