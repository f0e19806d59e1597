// ChunkIntervals, compared with a set of single numbers.
#include "frame/base/chunk_intervals.h"

#include <random>
#include <set>

#include <gtest/gtest.h>

namespace cframefs {
namespace {

using frame::ChunkIntervals;

TEST(ChunkIntervalsTest, RandomChangesEqualThoseOfASet) {
  constexpr std::int64_t kNumbers = 40;
  for (unsigned seed = 0; seed < 300; ++seed) {
    std::mt19937 random(seed);
    ChunkIntervals runs;
    std::set<std::int64_t> numbers;
    for (int step = 0; step < 40; ++step) {
      const auto begin = static_cast<std::int64_t>(random() % kNumbers);
      const auto end = begin + static_cast<std::int64_t>(random() % 12);
      if (random() % 2 == 0) {
        runs.add(begin, end);
        for (std::int64_t i = begin; i < end; ++i)
          numbers.insert(i);
      } else {
        const std::int64_t last = random() % 8 == 0 ? ChunkIntervals::kEnd : end;
        runs.remove(begin, last);
        numbers.erase(numbers.lower_bound(begin), numbers.lower_bound(last));
      }
      std::set<std::int64_t> found;
      std::int64_t before = -1;
      for (const auto& [from, until] : runs.runs()) {
        ASSERT_LT(before, from) << "runs that touch, seed " << seed;
        ASSERT_LT(from, until);
        for (std::int64_t i = from; i < until; ++i)
          found.insert(i);
        before = until;
      }
      ASSERT_EQ(found, numbers) << "seed " << seed;
      for (std::int64_t i = 0; i < kNumbers + 12; ++i) {
        ASSERT_EQ(runs.contains(i), numbers.contains(i));
        const auto next = runs.next(i);
        const auto wanted = numbers.lower_bound(i);
        ASSERT_EQ(next.has_value(), wanted != numbers.end());
        if (next) {
          ASSERT_EQ(next->begin, *wanted);
        }
      }
    }
  }
}

TEST(ChunkIntervalsTest, AVeryLongRunIsOneRun) {
  ChunkIntervals runs;
  runs.add(0, std::int64_t{1} << 60);
  runs.remove(5, 6);
  EXPECT_EQ(runs.size(), 2U);
  EXPECT_EQ(runs.next(5), (ChunkIntervals::Run{6, std::int64_t{1} << 60}));
}

}  // namespace
}  // namespace cframefs
