// Chunks of different sizes: what their own headers and the total settle, and what they do not.
#include "frame/chunk_table.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace cframefs {
namespace {

using frame::ChunkTable;
using frame::FlatOffset;

codec::Result<ChunkTable> table_of(const std::vector<std::optional<std::int32_t>>& sizes, std::uint64_t total) {
  return ChunkTable::build(static_cast<std::int64_t>(sizes.size()), total,
                           [&sizes](std::int64_t chunk) -> codec::Result<std::optional<std::int32_t>> {
                             return sizes[static_cast<std::size_t>(chunk)];
                           });
}

TEST(ChunkTable, FindsTheChunkOfEachByte) {
  const auto table = table_of({3, 0, 2, 0, 0, 1, 0}, 6);
  ASSERT_TRUE(table);
  const std::vector<std::int64_t> chunks = {0, 0, 0, 2, 2, 5};
  const std::vector<std::uint64_t> begins = {0, 0, 0, 3, 3, 5};
  for (std::uint64_t at = 0; at < 6; ++at) {
    const auto span = table->locate(FlatOffset{at});
    ASSERT_TRUE(span);
    EXPECT_EQ(span->chunk.value, chunks[at]);
    EXPECT_EQ(span->begin.value, begins[at]);
    EXPECT_EQ(span->nbytes, *table->size(chunks[at]));
  }
}

TEST(ChunkTable, TheTotalSettlesASingleUnknownSize) {
  const auto table = table_of({3, std::nullopt, 2}, 15);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(1), 10);
  EXPECT_EQ(table->locate(FlatOffset{12})->chunk.value, 1);
  EXPECT_EQ(table->locate(FlatOffset{13})->chunk.value, 2);
}

TEST(ChunkTable, SeveralUnknownSizesLeaveWhatIsBeforeAndBehind) {
  const auto table = table_of({3, std::nullopt, 2, std::nullopt, 4}, 20);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->locate(FlatOffset{2})->chunk.value, 0);
  for (std::uint64_t at = 3; at < 16; ++at) {
    const auto span = table->locate(FlatOffset{at});
    ASSERT_FALSE(span) << at;
    EXPECT_EQ(span.error().chunk, 1);
  }
  EXPECT_EQ(table->locate(FlatOffset{16})->chunk.value, 4);
  EXPECT_EQ(table->locate(FlatOffset{16})->begin.value, 16U);
  for (const std::int64_t chunk : {1, 2, 3})
    EXPECT_EQ(table->size(chunk), std::nullopt);
  EXPECT_EQ(table->size(4), 4);
}

TEST(ChunkTable, SizesThatContradictTheTotalAreRefused) {
  EXPECT_FALSE(table_of({3, 2}, 6));
  EXPECT_FALSE(table_of({3, 2}, 4));
  EXPECT_FALSE(table_of({3, std::nullopt}, 2));
  // More than a chunk can hold cannot be the size of the unknown one.
  const auto huge = table_of({3, std::nullopt}, std::uint64_t{1} << 40);
  ASSERT_TRUE(huge);
  EXPECT_FALSE(huge->locate(FlatOffset{3}));
  EXPECT_TRUE(huge->locate(FlatOffset{2}));
}

TEST(ChunkTable, AFailingReadIsNobodysSize) {
  const auto table = ChunkTable::build(2, 5, [](std::int64_t chunk) -> codec::Result<std::optional<std::int32_t>> {
    if (chunk == 1) return codec::io_error(EIO, "pread");
    return std::optional<std::int32_t>(5);
  });
  ASSERT_FALSE(table);
  EXPECT_EQ(table.error().kind, codec::ErrorKind::io);
}

TEST(ChunkTable, AgreesWithCountingForAnySizes) {
  EXPECT_TRUE(rc::check("each byte is in the chunk that counting gives", [] {
    const auto sizes = *rc::gen::container<std::vector<int>>(rc::gen::inRange(0, 50));
    std::vector<std::optional<std::int32_t>> given(sizes.begin(), sizes.end());
    std::vector<std::int64_t> owner;
    for (std::size_t i = 0; i < sizes.size(); ++i) {
      owner.insert(owner.end(), static_cast<std::size_t>(sizes[i]), static_cast<std::int64_t>(i));
    }
    if (!given.empty() && *rc::gen::arbitrary<bool>()) {
      given[*rc::gen::inRange<std::size_t>(0, given.size())] = std::nullopt;
    }
    const auto table = table_of(given, owner.size());
    RC_ASSERT(table.has_value());
    for (std::uint64_t at = 0; at < owner.size(); ++at) {
      const auto span = table->locate(FlatOffset{at});
      RC_ASSERT(span.has_value());
      RC_ASSERT(span->chunk.value == owner[at]);
      RC_ASSERT(span->begin.value <= at && at < span->begin.value + span->nbytes);
    }
  }));
}

}  // namespace
}  // namespace cframefs
