// What an idle mount does when (fs/fuse/idle_schedule.h), by a clock that the tests move.
#include "fs/fuse/idle_schedule.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using std::chrono::seconds;

constexpr IdleSchedule::Time kStart{std::chrono::hours(1)};

TEST(IdleSchedule, NothingIsDueWithoutLimits) {
  IdleSchedule schedule({});
  schedule.begin(kStart);
  EXPECT_FALSE(schedule.next());
  const auto due = schedule.take_due(kStart + seconds(1000000));
  EXPECT_FALSE(due.release || due.unmount);
}

TEST(IdleSchedule, MemoryIsReleasedOnce) {
  IdleSchedule schedule({seconds(60), {}});
  schedule.begin(kStart);
  EXPECT_EQ(schedule.next(), kStart + seconds(60));
  EXPECT_FALSE(schedule.take_due(kStart + seconds(59)).release);
  EXPECT_TRUE(schedule.take_due(kStart + seconds(60)).release);
  EXPECT_FALSE(schedule.next());
  EXPECT_FALSE(schedule.take_due(kStart + seconds(1000)).release);
  schedule.begin(kStart + seconds(2000));
  EXPECT_EQ(schedule.next(), kStart + seconds(2060));
}

TEST(IdleSchedule, UnmountingIsTriedAgain) {
  IdleSchedule schedule({seconds(60), seconds(100)});
  schedule.begin(kStart);
  EXPECT_TRUE(schedule.take_due(kStart + seconds(60)).release);
  EXPECT_EQ(schedule.next(), kStart + seconds(100));
  for (int i = 1; i < 4; ++i) {
    EXPECT_FALSE(schedule.take_due(kStart + seconds(100 * i - 1)).unmount);
    const auto due = schedule.take_due(kStart + seconds(100 * i));
    EXPECT_TRUE(due.unmount);
    EXPECT_FALSE(due.release);
  }
}

TEST(IdleSchedule, ANewBeginningCountsFromTheStart) {
  IdleSchedule schedule({{}, seconds(10)});
  schedule.begin(kStart);
  schedule.begin(kStart + seconds(9));
  EXPECT_FALSE(schedule.take_due(kStart + seconds(18)).unmount);
  EXPECT_TRUE(schedule.take_due(kStart + seconds(19)).unmount);
}

}  // namespace
}  // namespace cframefs::fs
