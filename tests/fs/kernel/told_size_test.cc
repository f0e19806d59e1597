// Each transition of told_size.h.
#include "fs/kernel/told_size.h"

#include <chrono>
#include <thread>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kInode = 7;

class ToldSizeTest : public ::testing::Test {
 protected:
  ToldSizeTest() { tell(100); }
  bool tell(std::uint64_t size) { return size_.tell(size, size_.begin_look()); }
  /// Reads up to `end`, without another read or a notification meanwhile.
  bool read(std::uint64_t end) { return size_.may_be_short({end - 10, 10, size_.begin_read(), kInode, true}, gate_); }

  ToldSize size_;
  NotificationGate gate_;
};

TEST_F(ToldSizeTest, TellsWhetherTheSizeIsAnother) {
  EXPECT_FALSE(tell(100));
  EXPECT_TRUE(tell(99));
  EXPECT_TRUE(tell(101));
}

TEST_F(ToldSizeTest, AReadEndsWhereTheKernelKnowsTheEnd) {
  EXPECT_TRUE(read(100));
  EXPECT_TRUE(read(200));
}

TEST_F(ToldSizeTest, AReadThatEndsBeforeFailsOnce) {
  EXPECT_FALSE(read(50));
  EXPECT_TRUE(read(50));
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, ASizeThatWasToldAfterAChangeMayHaveBeenIgnored) {
  tell(50);
  size_.changed_behind();
  EXPECT_FALSE(read(50));
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, AChangeThatLeavesTheSizeOrMakesItLargerIsNoDoubt) {
  size_.changed_behind();
  tell(150);
  EXPECT_TRUE(read(150));
}

TEST_F(ToldSizeTest, AnAnswerMayBeShortWhileThereAreWriters) {
  size_.begin_writing();
  EXPECT_TRUE(read(50));
  size_.end_writing();
  EXPECT_FALSE(read(50));
}

TEST_F(ToldSizeTest, AnAnswerThatWasReadBesideAWriterMayBeShort) {
  size_.tell(100, size_.begin_look());
  const ToldSize::Begin before = size_.begin_read();
  size_.begin_writing();
  const ToldSize::Begin beside = size_.begin_read();
  size_.end_writing();
  for (const ToldSize::Begin& begun : {before, beside})
    EXPECT_TRUE(size_.may_be_short({40, 10, begun, kInode, true}, gate_));
  // It tells nothing of the file as it is now.
  EXPECT_TRUE(read(100));
  EXPECT_FALSE(read(50));
}

TEST_F(ToldSizeTest, TheKernelKnowsTheSizeOfItsOwnTruncation) {
  ToldSize::Truncation(size_).succeeded(50);
  EXPECT_FALSE(tell(50));
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, AnAnswerMayBeShortWhileATruncationLasts) {
  {
    const ToldSize::Truncation truncation(size_);
    EXPECT_TRUE(read(50));
    tell(100);
    EXPECT_TRUE(read(50));
  }
  // It has failed.
  EXPECT_TRUE(read(100));
  EXPECT_FALSE(read(50));
}

TEST_F(ToldSizeTest, AnAnswerThatATruncationOvertakesTellsNothing) {
  const std::uint64_t look = size_.begin_look();
  ToldSize::Truncation(size_).succeeded(50);
  EXPECT_FALSE(size_.tell(100, look));
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, AReadBehindTheKnownEndFindsNothing) {
  EXPECT_TRUE(size_.may_be_short({200, 0, size_.begin_read(), kInode, false}, gate_));
}

TEST_F(ToldSizeTest, ReadaheadBehindTheEndFailsWhileTheSizeIsInDoubt) {
  const auto reads_nothing = [&] { return size_.may_be_short({80, 0, size_.begin_read(), kInode, false}, gate_); };
  EXPECT_FALSE(reads_nothing());
  EXPECT_FALSE(read(50));
  EXPECT_FALSE(reads_nothing());
  EXPECT_TRUE(read(50));
  EXPECT_FALSE(reads_nothing());
  std::this_thread::sleep_for(NotificationGate::kAnswerTime);
  EXPECT_TRUE(reads_nothing());
}

TEST_F(ToldSizeTest, TheSecondReadOfAPageBehindTheEndFindsNothing) {
  const auto reads_nothing = [&] { return size_.may_be_short({80, 0, size_.begin_read(), kInode, true}, gate_); };
  EXPECT_FALSE(reads_nothing());
  EXPECT_TRUE(reads_nothing());
}

TEST_F(ToldSizeTest, AReadThatBeganBeforeAnotherFailedFails) {
  const ToldSize::Begin begun = size_.begin_read();
  EXPECT_FALSE(read(50));
  EXPECT_FALSE(size_.may_be_short({40, 10, begun, kInode, true}, gate_));
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, AReadDuringANotificationFails) {
  EXPECT_FALSE(read(50));
  gate_.pass(kInode, [] {});
  EXPECT_FALSE(read(50));
  gate_.pass(kInode + 1, [] {});
  EXPECT_TRUE(read(50));
}

TEST_F(ToldSizeTest, ANotificationWaitsUntilTheReaderHasTakenTheAnswer) {
  EXPECT_FALSE(read(50));
  const auto before = std::chrono::steady_clock::now();
  EXPECT_TRUE(read(50));
  gate_.pass(kInode, [] {});
  EXPECT_GE(std::chrono::steady_clock::now() - before, NotificationGate::kAnswerTime);
}

}  // namespace
}  // namespace cframefs::fs
