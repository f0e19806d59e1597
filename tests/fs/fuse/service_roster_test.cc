// Which threads take requests (fs/fuse/service_roster.h), by a clock that the tests move.
#include "fs/fuse/service_roster.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kLonger = ServiceRoster::kStallLimit + milliseconds(1);

class ServiceRosterTest : public testing::Test {
 protected:
  std::vector<int> look_after(milliseconds pause) { return roster_.look(now_ += pause); }
  unsigned serving() const {
    unsigned count = 0;
    for (int i = 0; i < 16; ++i)
      count += roster_.is_serving(i) ? 1 : 0;
    return count;
  }

  ServiceRoster roster_{2, 16};
  ServiceRoster::Time now_{std::chrono::hours(1)};
};

TEST_F(ServiceRosterTest, RequestsThatAreAnsweredSoonCallNoOther) {
  for (int i = 0; i < 100; ++i) {
    roster_.took(0, now_);
    roster_.took(1, now_);
    EXPECT_TRUE(look_after(milliseconds(1)).empty());
    EXPECT_TRUE(roster_.answered(0));
    EXPECT_TRUE(roster_.answered(1));
  }
  EXPECT_EQ(serving(), 2U);
}

TEST_F(ServiceRosterTest, AnotherTakesThePlaceOfOneThatTakesLong) {
  roster_.took(1, now_);
  EXPECT_EQ(look_after(kLonger), std::vector<int>{2});
  EXPECT_FALSE(roster_.is_serving(1));
  EXPECT_FALSE(roster_.is_spare(1)) << "it still answers";
  EXPECT_EQ(serving(), 2U);
  EXPECT_FALSE(roster_.answered(1));
  EXPECT_TRUE(roster_.is_spare(1));
}

TEST_F(ServiceRosterTest, OneThatIsSpareComesBeforeOneThatNeverWasStarted) {
  roster_.took(0, now_);
  EXPECT_EQ(look_after(kLonger), std::vector<int>{2});
  EXPECT_FALSE(roster_.answered(0));
  roster_.took(2, now_);
  EXPECT_EQ(look_after(kLonger), std::vector<int>{0});
}

TEST_F(ServiceRosterTest, ACrowdOfSlowRequestsIsTakenInAFewSteps) {
  std::vector<int> serving_now = {0, 1};
  std::vector<std::size_t> called;
  while (!serving_now.empty()) {
    for (const int thread : serving_now)
      roster_.took(thread, now_);
    serving_now = look_after(kLonger);
    if (!serving_now.empty()) called.push_back(serving_now.size());
  }
  EXPECT_EQ(called, (std::vector<std::size_t>{4, 8, 2})) << "until all 16 are busy";
  // Two go on serving; the others have nothing to do any more.
  unsigned go_on = 0;
  for (int thread = 0; thread < 16; ++thread)
    go_on += roster_.answered(thread) ? 1 : 0;
  EXPECT_EQ(go_on, 2U);
  EXPECT_EQ(serving(), 2U);
}

TEST_F(ServiceRosterTest, ThoseThatWereCalledForACrowdThatWentAwayBecomeSpare) {
  roster_.took(0, now_);
  roster_.took(1, now_);
  ASSERT_EQ(look_after(kLonger).size(), 4U);
  EXPECT_EQ(serving(), 4U);
  for (int thread = 2; thread < 6; ++thread) {
    roster_.took(thread, now_);
    roster_.answered(thread);
  }
  EXPECT_EQ(serving(), 2U);
  EXPECT_FALSE(roster_.answered(0));
  EXPECT_FALSE(roster_.answered(1));
}

TEST_F(ServiceRosterTest, OneThatCannotBeStartedIsTriedAgain) {
  roster_.took(0, now_);
  ASSERT_EQ(look_after(kLonger), std::vector<int>{2});
  roster_.not_started(2);
  EXPECT_EQ(serving(), 1U);
  EXPECT_EQ(look_after(milliseconds(2)), std::vector<int>{2});
  EXPECT_FALSE(roster_.answered(0));
}

TEST_F(ServiceRosterTest, IsBusyWhileARequestIsAnswered) {
  EXPECT_FALSE(roster_.is_busy());
  roster_.took(1, now_);
  EXPECT_TRUE(roster_.is_busy());
  roster_.answered(1);
  EXPECT_FALSE(roster_.is_busy());
}

TEST_F(ServiceRosterTest, OneThatWaitsForTheDiskMakesRoomAtOnce) {
  roster_.took(0, now_);
  EXPECT_FALSE(roster_.waits(0)) << "thread 1 serves";
  EXPECT_TRUE(roster_.is_overdue(0));
  roster_.took(1, now_);
  EXPECT_TRUE(roster_.waits(1)) << "no thread serves";
  EXPECT_EQ(look_after(milliseconds(0)), (std::vector<int>{2, 3}));
  EXPECT_FALSE(roster_.answered(0)) << "2 and 3 serve";
  EXPECT_EQ(serving(), 2U);
}

TEST_F(ServiceRosterTest, OneThatWaitedForTheDiskServesAgainWithoutACall) {
  for (int i = 0; i < 100; ++i) {
    roster_.took(0, now_);
    EXPECT_FALSE(roster_.waits(0));
    EXPECT_TRUE(roster_.answered(0));
  }
  EXPECT_EQ(serving(), 2U);
}

TEST(ServiceRoster, OnlyAFewWaitForTheDiskInPlacesOfOthers) {
  constexpr unsigned kThreads = 128;
  ServiceRoster roster(2, kThreads);
  const ServiceRoster::Time now{std::chrono::hours(1)};
  std::vector<int> serving = {0, 1};
  unsigned waiting = 0;
  while (!serving.empty()) {
    for (const int thread : serving) {
      roster.took(thread, now);
      static_cast<void>(roster.waits(thread));
      waiting += roster.is_overdue(thread) ? 1 : 0;
    }
    serving = roster.look(now);
  }
  EXPECT_EQ(waiting, ServiceRoster::kMaxWaiting);
}

}  // namespace
}  // namespace cframefs::fs
