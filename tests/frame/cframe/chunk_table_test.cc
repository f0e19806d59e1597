// ChunkTable: which sizes and offsets follow from the chunks' headers and the total, and which remain unknown.
#include "frame/cframe/chunk_table.h"

#include <optional>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

namespace cframefs {
namespace {

using frame::ChunkTable;
using frame::FlatOffset;

codec::Result<ChunkTable> table_of_runs(const std::vector<ChunkTable::Sizes>& runs, std::uint64_t total) {
  std::size_t next = 0;
  return ChunkTable::build(total, [&]() -> codec::Result<std::optional<ChunkTable::Sizes>> {
    if (next == runs.size()) return std::optional<ChunkTable::Sizes>();
    return std::optional(runs[next++]);
  });
}

codec::Result<ChunkTable> table_of(const std::vector<std::optional<std::int32_t>>& sizes, std::uint64_t total) {
  std::vector<ChunkTable::Sizes> runs;
  for (const auto& size : sizes)
    runs.push_back({1, size});
  return table_of_runs(runs, total);
}

TEST(ChunkTable, FindsTheChunkOfEachByte) {
  const auto table = table_of({3, 0, 2, 0, 0, 1, 0}, 6);
  ASSERT_TRUE(table);
  const std::vector<std::int64_t> chunks = {0, 0, 0, 2, 2, 5};
  const std::vector<std::uint64_t> begins = {0, 0, 0, 3, 3, 5};
  for (std::uint64_t at = 0; at < 6; ++at) {
    const auto span = table->chunk_at(FlatOffset{at});
    ASSERT_TRUE(span);
    EXPECT_EQ(span->chunk.value, chunks[at]);
    EXPECT_EQ(span->begin.value, begins[at]);
    EXPECT_EQ(span->nbytes, *table->size(chunks[at]));
  }
}

TEST(ChunkTable, ASingleUnknownSizeFollowsFromTheTotal) {
  const auto table = table_of({3, std::nullopt, 2}, 15);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->size(1), 10);
  EXPECT_EQ(table->chunk_at(FlatOffset{12})->chunk.value, 1);
  EXPECT_EQ(table->chunk_at(FlatOffset{13})->chunk.value, 2);
}

TEST(ChunkTable, ChunksBeforeAndAfterSeveralUnknownSizesAreLocated) {
  const auto table = table_of({3, std::nullopt, 2, std::nullopt, 4}, 20);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->chunk_at(FlatOffset{2})->chunk.value, 0);
  for (std::uint64_t at = 3; at < 16; ++at) {
    const auto span = table->chunk_at(FlatOffset{at});
    ASSERT_FALSE(span) << at;
    EXPECT_EQ(span.error().chunk, 1);
  }
  EXPECT_EQ(table->chunk_at(FlatOffset{16})->chunk.value, 4);
  EXPECT_EQ(table->chunk_at(FlatOffset{16})->begin.value, 16U);
  for (const std::int64_t chunk : {1, 2, 3})
    EXPECT_EQ(table->size(chunk), std::nullopt);
  EXPECT_EQ(table->size(4), 4);
}

TEST(ChunkTable, SizesThatContradictTheTotalAreRefused) {
  EXPECT_FALSE(table_of({3, 2}, 6));
  EXPECT_FALSE(table_of({3, 2}, 4));
  EXPECT_FALSE(table_of({3, std::nullopt}, 2));
  // The unknown chunk would have more bytes than a chunk can hold.
  const auto huge = table_of({3, std::nullopt}, std::uint64_t{1} << 40);
  ASSERT_TRUE(huge);
  EXPECT_FALSE(huge->chunk_at(FlatOffset{3}));
  EXPECT_TRUE(huge->chunk_at(FlatOffset{2}));
}

TEST(ChunkTable, RunsAreNotExpanded) {
  constexpr std::int64_t kMany = std::int64_t{1} << 28;
  const auto table = table_of_runs({{kMany, 3}, {kMany, std::nullopt}, {kMany, 5}}, 9U * kMany);
  ASSERT_TRUE(table);
  EXPECT_EQ(table->chunk_at(FlatOffset{3U * kMany - 1})->chunk.value, kMany - 1);
  EXPECT_EQ(table->chunk_at(FlatOffset{3U * kMany}).error().chunk, kMany);
  EXPECT_EQ(table->chunk_at(FlatOffset{4U * kMany})->chunk.value, 2 * kMany);
  EXPECT_EQ(table->chunk_at(FlatOffset{9U * kMany - 1})->chunk.value, 3 * kMany - 1);
  EXPECT_EQ(table->size(2 * kMany - 1), std::nullopt);
  EXPECT_EQ(table->size(3 * kMany - 1), 5);
}

TEST(ChunkTable, ReadErrorsAreReturned) {
  int calls = 0;
  const auto table = ChunkTable::build(5, [&]() -> codec::Result<std::optional<ChunkTable::Sizes>> {
    if (++calls == 2) return codec::io_error(EIO, "pread");
    return std::optional(ChunkTable::Sizes{1, 5});
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
      const auto span = table->chunk_at(FlatOffset{at});
      RC_ASSERT(span.has_value());
      RC_ASSERT(span->chunk.value == owner[at]);
      RC_ASSERT(span->begin.value <= at && at < span->begin.value + span->nbytes);
    }
  }));
}

}  // namespace
}  // namespace cframefs
