// A budget grows with the stored bytes of a file, not with the sizes that the file claims.
#include "frame/base/parse_budget.h"

#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace cframefs::frame {
namespace {

constexpr std::uint64_t kBudgetMiB = std::uint64_t{1} << 20;

TEST(ParseBudget, AFewBytesAllowAtMost64MiB) {
  for (const ParseBudget& budget : {ParseBudget::unasked(1), ParseBudget::asked(1)}) {
    EXPECT_GE(budget.memory_left(), 16 * kBudgetMiB);
    EXPECT_LE(budget.memory_left(), 64 * kBudgetMiB);
  }
}

// semantics: Z2
TEST(ParseBudget, ItIsAFixedAmountAndTwiceTheFile) {
  for (const std::uint64_t stored : {0 * kBudgetMiB, 7 * kBudgetMiB}) {
    EXPECT_EQ(ParseBudget::unasked(stored).memory_left(), 24 * kBudgetMiB + 2 * stored);
    EXPECT_EQ(ParseBudget::asked(stored).memory_left(), 40 * kBudgetMiB + 2 * stored);
  }
}

TEST(ParseBudget, ItGrowsLinearlyAndDoesNotWrap) {
  const auto grown = [](std::uint64_t stored) {
    return ParseBudget::unasked(stored).memory_left() - ParseBudget::unasked(0).memory_left();
  };
  EXPECT_EQ(grown(2000 * kBudgetMiB), 2 * grown(1000 * kBudgetMiB));
  EXPECT_EQ(ParseBudget::asked(std::numeric_limits<std::uint64_t>::max()).memory_left(),
            std::numeric_limits<std::uint64_t>::max());
}

TEST(ParseBudget, ErrorsNameTheRestOfTheBudget) {
  ParseBudget budget = ParseBudget::asked(0);
  const std::uint64_t whole = budget.memory_left();
  ASSERT_TRUE(budget.take_memory(whole - 10, "the map"));
  const auto more = budget.take_memory(11, "the map");
  ASSERT_FALSE(more);
  EXPECT_EQ(more.error().kind, codec::ErrorKind::unsupported);
  EXPECT_EQ(more.error().reason,
            "the map: needs memory of 11 bytes, but only 10 are left of what the size of the file justifies");
  budget.release_memory(1);
  EXPECT_TRUE(budget.take_memory(11, "the map"));
  // Releasing more than was taken does not increase the budget.
  budget.release_memory(std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(budget.memory_left(), whole);
}

TEST(ParseBudget, WorkIsNotReleased) {
  ParseBudget budget = ParseBudget::unasked(0);
  const std::uint64_t whole = budget.work_left();
  ASSERT_TRUE(budget.spend_work(whole, "the map"));
  EXPECT_FALSE(budget.spend_work(1, "the map"));
}

TEST(ParseBudget, HolesAreNotStored) {
  struct stat status {};
  status.st_size = 1 << 30;
  status.st_blocks = 16;
  EXPECT_EQ(stored_bytes(status), 8192U);
  status.st_size = 100;
  EXPECT_EQ(stored_bytes(status), 100U);
  status.st_blocks = 0;  // a filesystem that does not report blocks
  EXPECT_EQ(stored_bytes(status), 100U);
}

}  // namespace
}  // namespace cframefs::frame
