// The table of the busiest files, and the buckets of a histogram.
#include "fs/util/busy_files.h"

#include <algorithm>
#include <string>

#include <gtest/gtest.h>

#include "fs/util/histogram.h"
#include "fs/util/open_metrics.h"

namespace cframefs::fs {
namespace {

std::string path_of(std::uint64_t id) {
  return "file " + std::to_string(id);
}

TEST(BusyFiles, CountsEachFileWhileTheTableHasRoom) {
  BusyFiles busy;
  for (std::uint64_t id = 1; id <= BusyFiles::kFiles; ++id) {
    for (std::uint64_t i = 0; i < id; ++i)
      busy.note(id, {10, 1}, path_of);
  }
  const auto files = busy.files();
  ASSERT_EQ(files.size(), BusyFiles::kFiles);
  for (std::size_t i = 0; i < files.size(); ++i) {
    const std::uint64_t id = BusyFiles::kFiles - i;
    EXPECT_EQ(files[i].path, path_of(id));
    EXPECT_EQ(files[i].read_bytes, 10 * id);
    EXPECT_EQ(files[i].write_bytes, id);
    EXPECT_EQ(files[i].requests, id);
    EXPECT_EQ(files[i].inherited, 0U);
  }
}

TEST(BusyFiles, KeepsAFileWithALargeShareAmongManyOthers) {
  BusyFiles busy;
  constexpr std::uint64_t kOthers = 100'000;
  constexpr std::uint64_t kBusy = 7;
  std::uint64_t truth = 0;
  for (std::uint64_t i = 0; i < kOthers; ++i) {
    busy.note(1000 + i, {100, 0}, path_of);
    if (i % 20 != 0) continue;
    busy.note(kBusy, {1000, 0}, path_of);
    truth += 1000;
  }
  const auto files = busy.files();
  ASSERT_EQ(files.size(), BusyFiles::kFiles);
  EXPECT_EQ(files.front().id, kBusy);
  EXPECT_GE(files.front().bytes(), truth);
  EXPECT_LE(files.front().bytes() - files.front().inherited, truth);
}

TEST(Histogram, PutsABoundIntoItsBucketAndMoreIntoTheNext) {
  for (std::size_t bucket = 0; bucket < Histogram::kBounds; ++bucket) {
    Histogram histogram;
    histogram.add(Histogram::bound(bucket));
    histogram.add(Histogram::bound(bucket) + 1);
    const auto counts = histogram.counts();
    EXPECT_EQ(counts.buckets[bucket], 1U) << bucket;
    EXPECT_EQ(counts.buckets[bucket + 1], 1U) << bucket;
    EXPECT_EQ(counts.sum, 2 * Histogram::bound(bucket) + 1);
  }
  Histogram histogram;
  histogram.add(0);
  histogram.add(UINT64_MAX);
  EXPECT_EQ(histogram.counts().buckets.front(), 1U);
  EXPECT_EQ(histogram.counts().buckets.back(), 1U);
}

TEST(Histogram, CountsNothingUnlessEnabled) {
  Histogram histogram;
  { const Stopwatch watch(histogram); }
  EXPECT_EQ(histogram.counts().buckets.front(), 0U);
  histogram.enable();
  { const Stopwatch watch(histogram); }
  const auto buckets = histogram.counts().buckets;
  EXPECT_EQ(std::count(buckets.begin(), buckets.end(), 1U), 1);
}

TEST(OpenMetrics, WritesCanonicalNumbers) {
  EXPECT_EQ(canonical_number(1), "1.0");
  EXPECT_EQ(canonical_number(1024e-9), "1.024e-06");
  EXPECT_EQ(canonical_number(0.5), "0.5");
}

}  // namespace
}  // namespace cframefs::fs
