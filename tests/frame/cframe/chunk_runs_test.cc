// Runs of chunks agree with the entries of every kind of index, and iterating costs time for each run, not for each
// chunk.
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "frame/base/elapsed.h"
#include "frame/cframe/frame_layout.h"
#include "frame/io/system_version.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::ChunkNumber;
using frame::ChunkRun;
using frame::layout::kUninitialisedEntry;
using frame::layout::kZerosEntry;
using test::Bytes;

constexpr std::int64_t kEndless = (INT32_MAX - 32) / 8;

Bytes value_bytes(const std::vector<std::int64_t>& entries) {
  Bytes bytes(entries.size() * 8);
  for (std::size_t i = 0; i < entries.size(); ++i)
    codec::store_le(&bytes[i * 8], entries[i]);
  return bytes;
}

test::FrameBuilder frame_of(std::int64_t chunks, std::int32_t chunksize, Bytes index) {
  test::FrameBuilder builder;
  builder.chunksize = chunksize;
  builder.nbytes = chunks * chunksize;
  builder.chunk_section = test::plain_chunk(Bytes(static_cast<std::size_t>(chunksize), 7));
  builder.index = std::move(index);
  return builder;
}

std::vector<ChunkRun> runs_of(const frame::Container& container, std::int64_t begin, std::int64_t end) {
  std::vector<ChunkRun> found;
  const auto runs = container.runs(ChunkNumber{begin}, ChunkNumber{end});
  for (ChunkRun run;;) {
    const auto more = runs->next(run);
    EXPECT_TRUE(more);
    if (!more || !*more) return found;
    found.push_back(run);
  }
}

TEST(ChunkRuns, AgreeWithTheIndex) {
  EXPECT_TRUE(rc::check("each chunk is in one run, with its entry", [] {
    const auto lengths = *rc::gen::nonEmpty(rc::gen::container<std::vector<int>>(rc::gen::inRange(1, 1200)));
    std::vector<std::int64_t> entries;
    for (std::size_t i = 0; i < lengths.size(); ++i)
      entries.insert(entries.end(), static_cast<std::size_t>(lengths[i]), i % 2 == 0 ? kZerosEntry : 0);
    const auto count = static_cast<std::int64_t>(entries.size());
    auto builder = frame_of(count, 8, test::raw_block_chunk(value_bytes(entries), *rc::gen::inRange(8U, 9000U)));
    const bool is_short = *rc::gen::arbitrary<bool>();
    builder.nbytes -= is_short ? 3 : 0;
    const auto opened = test::open_frame(builder.build());
    RC_ASSERT(opened.has_value());
    const auto begin = *rc::gen::inRange<std::int64_t>(0, count);
    const auto end = *rc::gen::inRange<std::int64_t>(begin, count + 1);
    std::int64_t next = begin;
    for (const ChunkRun& run : runs_of(**opened, begin, end)) {
      RC_ASSERT(run.first.value == next && run.step == 1 && run.damage == nullptr);
      next += run.count;
      RC_ASSERT(run.alike == !(is_short && run.first.value == count - 1));
      for (std::int64_t i = 0; run.alike && i < run.count; ++i)
        RC_ASSERT(entries[static_cast<std::size_t>(run.first.value + i)] == run.same);
    }
    RC_ASSERT(next == end);
  }));
}

TEST(ChunkRuns, AreFewIfTheIndexIsPeriodic) {
  const auto uniform =
      test::open_frame(frame_of(kEndless, 1, test::repeated_chunk(value_bytes({0}), 8 * kEndless)).build());
  ASSERT_TRUE(uniform);
  const auto one = runs_of(**uniform, 0, kEndless);
  ASSERT_EQ(one.size(), 1U);
  EXPECT_EQ(one[0].count, kEndless);
  EXPECT_EQ(one[0].same, 0);

  const std::int64_t count = kEndless / 3 * 3;
  auto builder =
      frame_of(count, 4, test::repeated_chunk(value_bytes({kZerosEntry, 0, kUninitialisedEntry}), 8 * count));
  builder.nbytes -= 1;
  const auto periodic = test::open_frame(builder.build());
  ASSERT_TRUE(periodic);
  const auto four = runs_of(**periodic, 0, count);
  ASSERT_EQ(four.size(), 4U);
  EXPECT_EQ(four[0].count, count / 3);
  EXPECT_EQ(four[1].same, 0);
  EXPECT_EQ(four[1].step, 3);
  EXPECT_EQ(four[2].count, count / 3 - 1) << "the last chunk is shorter than the others";
  EXPECT_EQ(four[3].first.value, count - 1);
  EXPECT_FALSE(four[3].alike);
}

TEST(ChunkRuns, OfAPeriodicIndexBeginAnywhere) {
  // A value of 255 bytes repeats after 255 entries, whose bytes lie across the values.
  constexpr std::int64_t kPeriod = 255;
  Bytes value(kPeriod);
  for (std::size_t i = 0; i < value.size(); ++i)
    value[i] = static_cast<std::uint8_t>(i * 7 + 1);
  const auto entry = [&value](std::int64_t chunk) {
    std::uint64_t bits = 0;
    for (unsigned byte = 0; byte < 8; ++byte)
      bits |= std::uint64_t{value[static_cast<std::size_t>((chunk * 8 + byte) % kPeriod)]} << (8 * byte);
    return static_cast<std::int64_t>(bits);
  };
  const std::int64_t count = kPeriod * 4096;
  const auto opened = test::open_frame(frame_of(count, 1, test::repeated_chunk(value, 8 * count)).build());
  ASSERT_TRUE(opened) << describe(opened.error());
  // Around the ends of 2,048 entries, 64 KiB and 1 MiB, where an index may be divided.
  for (const std::int64_t end : {std::int64_t{2048}, std::int64_t{8192}, std::int64_t{131072}, count - 300}) {
    for (const std::int64_t begin : {end - 256, end - 255, end - 254, end - 1, end, end + 1}) {
      const auto runs = runs_of(**opened, begin, count);
      ASSERT_EQ(runs.size(), static_cast<std::size_t>(kPeriod)) << begin;
      for (std::int64_t i = 0; i < kPeriod; ++i) {
        const ChunkRun& run = runs[static_cast<std::size_t>(i)];
        ASSERT_TRUE(run.alike && run.step == kPeriod && run.first.value == begin + i) << begin << " + " << i;
        ASSERT_EQ(run.same, entry(begin + i)) << begin << " + " << i;
        ASSERT_EQ(run.count, (count - begin - i + kPeriod - 1) / kPeriod) << begin << " + " << i;
      }
    }
  }
}

TEST(ChunkRuns, ReportDamagedPartsOfTheIndex) {
  Bytes index = test::raw_block_chunk(value_bytes(std::vector<std::int64_t>(3000, kZerosEntry)), 8000);
  const auto second = codec::load_le<std::int32_t>(&index[32 + 4]);
  codec::store_le<std::int32_t>(&index[static_cast<std::size_t>(second)], -300);
  const auto opened = test::open_frame(frame_of(3000, 8, index).build());
  ASSERT_TRUE(opened);
  const auto runs = runs_of(**opened, 0, 3000);
  ASSERT_EQ(runs.size(), 3U);
  EXPECT_EQ(runs[0].count, 1000);
  EXPECT_NE(runs[1].damage, nullptr);
  EXPECT_EQ(runs[1].count, 1000);
  EXPECT_EQ(runs[2].damage, nullptr);
}

constexpr bool kHasFarTimes = sizeof(time_t) == sizeof(std::int64_t);

struct timespec at_second(std::int64_t second, long nanosecond = 0) {
  return {static_cast<time_t>(second), nanosecond};
}

TEST(Elapsed, IsTheDifference) {
  EXPECT_EQ(frame::elapsed_ns({10, 5}, {12, 3}), 1'999'999'998);
  EXPECT_EQ(frame::elapsed_ns({12, 3}, {10, 5}), -1'999'999'998);
}

TEST(Elapsed, SaturatesForExtremeTimes) {
  if (!kHasFarTimes) GTEST_SKIP() << "times have 32 bits here";
  constexpr std::int64_t kMost = INT64_MAX;
  EXPECT_EQ(frame::elapsed_ns(at_second(INT64_MIN), at_second(INT64_MAX)), kMost);
  EXPECT_EQ(frame::elapsed_ns(at_second(INT64_MAX, 999'999'999), at_second(INT64_MIN)), -kMost);
  EXPECT_EQ(frame::elapsed_ns(at_second(13'569'465'600), at_second(0)), -kMost) << "the year 2400";
}

TEST(Elapsed, AChangeTimeInTheFarFutureIsSettled) {
  if (!kHasFarTimes) GTEST_SKIP() << "times have 32 bits here";
  struct stat status {};
  clock_gettime(CLOCK_REALTIME, &status.st_ctim);
  // 2^55 seconds, converted to nanoseconds of 64 bits with overflow, would be 0.
  status.st_ctim.tv_sec += std::int64_t{1} << 55;
  EXPECT_FALSE(frame::version_of(status).racy);
}

}  // namespace
}  // namespace cframefs
