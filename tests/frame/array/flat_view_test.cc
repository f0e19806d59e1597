// FlatView: any range equals that of the whole file, and holes are reported where chunks are zeros.
#include "frame/array/flat_view.h"

#include <set>

#include <gtest/gtest.h>

#include "frame/cframe/frame_layout.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::FlatOffset;
using frame::layout::kUninitialisedEntry;
using frame::layout::kZerosEntry;
using test::Bytes;
using test::FrameBuilder;

std::vector<std::uint8_t> whole(const frame::FlatView& view) {
  std::vector<std::uint8_t> bytes;
  const auto done =
      test::read_all(view, [&bytes](codec::ByteView chunk) { bytes.insert(bytes.end(), chunk.begin(), chunk.end()); });
  EXPECT_TRUE(done) << describe(done.error());
  return bytes;
}

/// Returns golden frames of moderate size with different features: one per value of the first words of column
/// `features`.
std::vector<test::Row> varied_rows() {
  std::set<std::string> seen;
  std::vector<test::Row> rows;
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")) {
    const std::int64_t nbytes = row.number("nbytes");
    if (row["sha256"] == "-" || nbytes == 0 || nbytes > (1 << 20)) continue;
    if (seen.insert(row["codec"] + row["filters"] + row["features"].substr(0, 12)).second) rows.push_back(row);
  }
  return rows;
}

TEST(FlatView, AnyRangeOfAGoldenFrameIsThatOfTheWhole) {
  const std::vector<test::Row> rows = varied_rows();
  ASSERT_GT(rows.size(), 50U);
  for (const test::Row& row : rows) {
    SCOPED_TRACE(row["path"]);
    const auto opened = test::open_frame(row.file("path").string(), static_cast<std::uint64_t>(row.number("offset")));
    ASSERT_TRUE(opened) << describe(opened.error());
    const auto view = std::make_shared<const frame::FlatView>(*opened);
    const std::vector<std::uint8_t> content = whole(*view);
    std::uint64_t state = 12345;  // seed of a small generator, so that all runs use the same ranges
    for (int i = 0; i < 40; ++i) {
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t begin = (state >> 33) % content.size();
      state = state * 6364136223846793005U + 1442695040888963407U;
      const std::uint64_t length = (state >> 33) % std::min<std::uint64_t>(content.size() - begin + 1, 9000);
      const auto bytes = test::read_range(*view, begin, length);
      ASSERT_TRUE(bytes) << describe(bytes.error());
      ASSERT_TRUE(std::equal(bytes->begin(), bytes->end(), content.begin() + static_cast<std::ptrdiff_t>(begin)))
          << begin << '+' << length;
    }
  }
}

/// Chunks of 100 bytes: data, hole, hole, data, hole (short last chunk).
FrameBuilder with_holes() {
  FrameBuilder builder = test::plain_frame(Bytes(200, 1), 100);
  builder.index = test::plain_index({0, kZerosEntry, kUninitialisedEntry, 132, kZerosEntry});
  builder.nbytes = 450;
  return builder;
}

TEST(FlatView, SeekFindsDataAndHolesAsLseekDoes) {
  const auto opened = test::open_frame(with_holes().build());
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  EXPECT_EQ(view->size(), 450U);
  struct {
    std::uint64_t from, data, hole;
  } const cases[] = {{0, 0, 100},     {99, 99, 100},   {100, 300, 100}, {250, 300, 250}, {300, 300, 400},
                     {399, 399, 400}, {400, 450, 400}, {449, 450, 449}, {450, 450, 450}};
  for (const auto& expected : cases) {
    EXPECT_EQ(view->seek(FlatOffset{expected.from}, false)->value, expected.data) << expected.from;
    EXPECT_EQ(view->seek(FlatOffset{expected.from}, true)->value, expected.hole) << expected.from;
  }
}

TEST(FlatView, HolesReadAsZeros) {
  const auto opened = test::open_frame(with_holes().build());
  ASSERT_TRUE(opened) << describe(opened.error());
  Bytes expected(450, 0);
  std::fill_n(expected.begin(), 100, 1);
  std::fill_n(expected.begin() + 300, 100, 1);
  EXPECT_EQ(whole(frame::FlatView(*opened)), expected);
}

TEST(FlatView, AFrameWithoutDataHasTheHoleAtItsEndAtZero) {
  FrameBuilder builder;
  builder.chunksize = -1;
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  EXPECT_EQ(view->size(), 0U);
  EXPECT_EQ(view->seek(FlatOffset{0}, true)->value, 0U);
}

TEST(FlatView, ADamagedIndexIsAnErrorAndNotAHole) {
  FrameBuilder builder = with_holes();
  Bytes plain(5 * 8);
  builder.index = test::raw_block_chunk(plain, 40);
  codec::store_le(&builder.index[36], std::int32_t{-300});
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_FALSE(frame::FlatView(*opened).seek(FlatOffset{0}, true));
}

/// Chunks of 30, 70 and 10 bytes; the second last is not stored.
TEST(FlatView, ChunksOfDifferentSizesAreConcatenated) {
  FrameBuilder builder;
  builder.general_flags = 0x53;
  builder.chunksize = 0;
  builder.nbytes = 130;
  std::vector<std::int64_t> offsets;
  for (const std::uint8_t length : {30, 70, 10}) {
    offsets.push_back(static_cast<std::int64_t>(builder.chunk_section.size()));
    const Bytes chunk = test::plain_chunk(Bytes(length, length));
    builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
  }
  builder.index = test::plain_index({offsets[0], offsets[1], kZerosEntry, offsets[2]});
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  EXPECT_TRUE((*opened)->parameters().variable_chunks);
  const auto view = std::make_shared<const frame::FlatView>(*opened);
  Bytes expected(30, 30);
  expected.insert(expected.end(), 70, 70);
  expected.insert(expected.end(), 20, 0);
  expected.insert(expected.end(), 10, 10);
  const auto bytes = test::read_range(*view, 0, 130);
  ASSERT_TRUE(bytes) << describe(bytes.error());
  EXPECT_EQ(*bytes, expected);
  EXPECT_EQ(view->seek(FlatOffset{5}, false)->value, 5U);
  EXPECT_EQ(view->seek(FlatOffset{5}, true)->value, 130U);
}

TEST(FlatView, AnIndexThatRepeatsOneSmallChunkTakesBoundedMemory) {
  FrameBuilder builder;
  builder.general_flags = 0x53;
  builder.chunksize = 0;
  constexpr std::int64_t kChunks = (INT32_MAX - 32) / 8;
  builder.nbytes = 40 * kChunks;
  builder.chunk_section = test::plain_chunk(Bytes(40, 1));
  const Bytes zero(8, 0);
  builder.index = test::repeated_chunk(zero, 8 * kChunks);
  const auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened) << describe(opened.error());
  // A table with one entry per chunk would take seconds and gigabytes.
  const auto located = (*opened)->chunk_at(FlatOffset{40 * kChunks - 1});
  ASSERT_TRUE(located) << describe(located.error());
  EXPECT_EQ(located->chunk.value, kChunks - 1);
  builder.nbytes = 1 << 30;
  const auto contradicted = test::open_frame(builder.build());
  ASSERT_TRUE(contradicted) << describe(contradicted.error());
  EXPECT_EQ((*contradicted)->chunk_at(FlatOffset{5}).error().kind, codec::ErrorKind::corruption);
}

}  // namespace
}  // namespace cframefs
