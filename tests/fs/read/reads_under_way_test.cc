// Which pages of a file need not be dropped at once, because a read that holds them checks the file once more.
#include "fs/read/reads_under_way.h"

#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using Ranges = std::vector<ReadsUnderWay::Range>;

constexpr std::uint64_t kEnd = std::numeric_limits<std::int64_t>::max();

class ReadsUnderWayTest : public testing::Test {
 protected:
  ReadsUnderWay::Mark begin(std::uint64_t at, std::uint64_t length, std::uint64_t page = 4096) {
    return ReadsUnderWay::begin(reads_, at, length, page);
  }
  bool is_all_dropped() const { return ReadsUnderWay::is_all(reads_->gaps()); }

  std::shared_ptr<ReadsUnderWay> reads_ = std::make_shared<ReadsUnderWay>();
};

TEST_F(ReadsUnderWayTest, WithoutReadsAllIsDropped) {
  EXPECT_EQ(reads_->gaps(), (Ranges{{0, kEnd}}));
  EXPECT_TRUE(is_all_dropped());
}

TEST_F(ReadsUnderWayTest, WholePagesOfAReadAreLeftOut) {
  const auto read = begin(8192, 5000);
  EXPECT_EQ(reads_->gaps(), (Ranges{{0, 8192}, {16384, kEnd}}));
  EXPECT_FALSE(is_all_dropped());
}

TEST_F(ReadsUnderWayTest, PagesMayBeLarger) {
  const auto read = begin(70000, 5000, 65536);
  EXPECT_EQ(reads_->gaps(), (Ranges{{0, 65536}, {131072, kEnd}}));
}

TEST_F(ReadsUnderWayTest, NeighboursLeaveNoGap) {
  const auto second = begin(4096, 4096);
  const auto first = begin(0, 4096);
  const auto far = begin(40960, 4096);
  EXPECT_EQ(reads_->gaps(), (Ranges{{8192, 40960}, {45056, kEnd}}));
}

TEST_F(ReadsUnderWayTest, AReadInItsLastCheckIsWaitedFor) {
  auto read = begin(0, 4096);
  read.close();
  EXPECT_TRUE(is_all_dropped());
  read.reopen();
  EXPECT_FALSE(is_all_dropped());
}

TEST_F(ReadsUnderWayTest, AnAnsweredReadIsGone) {
  { const auto read = begin(0, 4096); }
  EXPECT_TRUE(is_all_dropped());
}

TEST_F(ReadsUnderWayTest, AReadWhosePagesAnotherOneHoldsWasAnsweredEarly) {
  auto interrupted = begin(0, 8192);
  {
    const auto next = begin(4096, 8192);
    EXPECT_EQ(reads_->gaps(), (Ranges{{0, 4096}, {12288, kEnd}}));
  }
  EXPECT_TRUE(is_all_dropped()) << "the pages hold the bytes of the later read";
  interrupted.reopen();
  EXPECT_TRUE(is_all_dropped());
}

TEST_F(ReadsUnderWayTest, AMarkThatIsReplacedEndsItsRead) {
  auto read = begin(0, 4096);
  read = ReadsUnderWay::Mark();
  EXPECT_TRUE(is_all_dropped());
  read.close();
  read.reopen();
}

TEST_F(ReadsUnderWayTest, TheLastPageOfTheLargestFile) {
  const auto read = begin(kEnd - 4095, 4096);
  EXPECT_EQ(reads_->gaps(), (Ranges{{0, kEnd - 4095}}));
}

}  // namespace
}  // namespace cframefs::fs
