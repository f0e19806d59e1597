// When one thread answers alone (fs/fuse/busy_poll_policy.h), by a clock that the tests move.
#include "fs/fuse/busy_poll_policy.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr microseconds kQuick{20};

class LoneServerTest : public testing::Test {
 protected:
  /// A request `pause` after the last answer, answered by `who` after `length`. Whether `who` is told to call the
  /// others.
  bool serve(int who, microseconds pause = kQuick, microseconds length = kQuick, bool waited = false) {
    now_ += pause;
    const BusyPollPolicy::Time taken_at = now_;
    const bool calls = policy_.on_request(who, now_, waited);
    now_ += length;
    ended_ = policy_.on_reply(who, taken_at, now_);
    return calls;
  }
  void begin(int who) {
    serve(who);
    for (unsigned i = 1; i < BusyPollPolicy::kEnterThreshold; ++i)
      ASSERT_FALSE(serve(who)) << i;
    ASSERT_TRUE(serve(who));
    ASSERT_TRUE(policy_.is_leader(who));
  }

  /// Returns whether a pause of this length ends the leadership.
  bool pause(std::chrono::microseconds length) {
    now_ += length;
    return policy_.ends_overdue(now_);
  }

  BusyPollPolicy policy_{true};
  BusyPollPolicy::Time now_{std::chrono::hours(1)};
  bool ended_ = false;  // what the last on_reply() returned
};

TEST_F(LoneServerTest, RequestsThatComeCloselyOneByOneAreServedByOneThread) {
  // Whichever threads took them before.
  for (unsigned i = 0; i < BusyPollPolicy::kEnterThreshold; ++i)
    EXPECT_FALSE(serve(static_cast<int>(i % 2)));
  EXPECT_FALSE(policy_.is_parked(0));
  EXPECT_TRUE(serve(1));
  EXPECT_TRUE(policy_.is_leader(1));
  EXPECT_TRUE(policy_.is_parked(0));
  EXPECT_FALSE(policy_.is_parked(1));
  // Only once are the others called.
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(serve(1));
  EXPECT_TRUE(policy_.is_leader(1));
}

TEST_F(LoneServerTest, WhereItMayNotBeginItDoesNot) {
  BusyPollPolicy policy(false);
  for (int i = 0; i < 100; ++i) {
    EXPECT_FALSE(policy.on_request(0, now_, false));
    EXPECT_FALSE(policy.on_reply(0, now_, now_));
  }
  EXPECT_FALSE(policy.is_parked(1));
}

TEST_F(LoneServerTest, RequestsThatComeNowAndThenLetAllServe) {
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(serve(0, BusyPollPolicy::kSpinTime + microseconds(1)));
  EXPECT_FALSE(policy_.is_leader(0));
}

TEST_F(LoneServerTest, AnswersThatTakeLongLetAllServe) {
  for (int i = 0; i < 100; ++i)
    EXPECT_FALSE(serve(0, kQuick, BusyPollPolicy::kSlowReply + microseconds(1)));
  EXPECT_FALSE(policy_.is_leader(0));
}

TEST_F(LoneServerTest, RequestsThatAreAnsweredAtOnceLetAllServe) {
  for (int i = 0; i < 100; ++i) {
    now_ += kQuick;
    EXPECT_FALSE(policy_.on_request(0, now_, false));
    EXPECT_FALSE(policy_.on_request(1, now_, false));
    policy_.on_reply(0, now_, now_ + kQuick);
    policy_.on_reply(1, now_, now_ + kQuick);
    now_ += kQuick;
  }
  EXPECT_FALSE(policy_.is_leader(0));
  EXPECT_FALSE(policy_.is_leader(1));
}

TEST_F(LoneServerTest, AProgramThatCreatesFilesIsServedByOneThread) {
  // GETATTR, LOOKUP, CREATE, WRITE, FLUSH; then RELEASE, during which the next GETATTR comes.
  for (int file = 0; file < 12 && !policy_.is_leader(0); ++file) {
    for (int i = 0; i < 5; ++i)
      serve(0);
    now_ += kQuick;
    policy_.on_request(0, now_, false);
    policy_.on_request(1, now_, false);
    policy_.on_reply(0, now_, now_ + kQuick);
    now_ += kQuick;
    policy_.on_reply(1, now_, now_);
  }
  EXPECT_TRUE(policy_.is_leader(0));
}

TEST_F(LoneServerTest, ALongPauseEndsIt) {
  begin(0);
  EXPECT_FALSE(pause(BusyPollPolicy::kLongPause));
  EXPECT_TRUE(policy_.is_parked(1));
  EXPECT_TRUE(pause(microseconds(1)));
  EXPECT_FALSE(policy_.is_parked(1));
  EXPECT_FALSE(pause(milliseconds(1))) << "it has ended already";
}

TEST_F(LoneServerTest, AfterAShortPauseTheLeaderSleepsAndStaysTheLeader) {
  begin(0);
  EXPECT_TRUE(policy_.polls(now_));
  policy_.on_idle();
  EXPECT_FALSE(policy_.polls(now_));
  serve(0, BusyPollPolicy::kSpinTime + microseconds(1));
  EXPECT_FALSE(policy_.polls(now_)) << "the next request may be as late";
  EXPECT_TRUE(policy_.is_parked(1));
  serve(0);
  EXPECT_TRUE(policy_.polls(now_));
}

TEST_F(LoneServerTest, WhereOtherProgramsNeedTheProcessorTheLeaderDoesNotPoll) {
  begin(0);
  policy_.on_poll(now_ - BusyPollPolicy::kCrowded, now_);
  EXPECT_TRUE(policy_.polls(now_));
  policy_.on_poll(now_ - BusyPollPolicy::kCrowded - microseconds(1), now_);
  EXPECT_FALSE(policy_.polls(now_));
  EXPECT_TRUE(policy_.is_leader(0)) << "it still answers alone";
  serve(0);
  EXPECT_FALSE(policy_.polls(now_));
  for (int i = 0; i < 10'000 && !policy_.polls(now_); ++i)
    serve(0);
  EXPECT_TRUE(policy_.polls(now_)) << "after a while it tries again";
}

TEST_F(LoneServerTest, AThreadThatDoesNotServeAnyMoreIsNoLeader) {
  begin(0);
  EXPECT_FALSE(policy_.resign(1));
  EXPECT_TRUE(policy_.is_leader(0));
  EXPECT_TRUE(policy_.resign(0));
  EXPECT_FALSE(policy_.is_parked(1));
}

TEST_F(LoneServerTest, AfterAPauseItIsSoonBegunAgain) {
  begin(0);
  EXPECT_TRUE(pause(BusyPollPolicy::kLongPause + microseconds(1)));
  EXPECT_FALSE(serve(1, BusyPollPolicy::kSpinTime + microseconds(1)));
  for (unsigned i = 1; i < BusyPollPolicy::kReenterThreshold; ++i)
    EXPECT_FALSE(serve(1));
  EXPECT_TRUE(serve(1));
  EXPECT_TRUE(policy_.is_parked(0));
}

TEST_F(LoneServerTest, AfterTroubleItIsBegunByAsManyAsBefore) {
  begin(0);
  EXPECT_TRUE(pause(BusyPollPolicy::kLongPause + microseconds(1)));
  serve(1);  // after a pause
  for (unsigned i = 0; i < BusyPollPolicy::kReenterThreshold; ++i)
    serve(1);
  ASSERT_TRUE(policy_.is_leader(1));
  for (unsigned i = 0; i < BusyPollPolicy::kLeaveThreshold; ++i)
    serve(1, kQuick, kQuick, true);
  EXPECT_TRUE(ended_);
  for (unsigned i = 1; i < BusyPollPolicy::kEnterThreshold; ++i)
    EXPECT_FALSE(serve(1));
  EXPECT_TRUE(serve(1));
}

TEST_F(LoneServerTest, RequestsThatWaitForEachOtherEndIt) {
  begin(0);
  for (unsigned i = 1; i < BusyPollPolicy::kLeaveThreshold; ++i)
    serve(0, kQuick, kQuick, true);
  EXPECT_FALSE(ended_);
  serve(0);  // one that comes after the answer: they only came close together, as releases do
  for (unsigned i = 1; i < BusyPollPolicy::kLeaveThreshold; ++i)
    serve(0, kQuick, kQuick, true);
  EXPECT_FALSE(ended_);
  serve(0, kQuick, kQuick, true);
  EXPECT_TRUE(ended_);
  EXPECT_FALSE(policy_.is_parked(1));
}

TEST_F(LoneServerTest, LongAnswersEndIt) {
  begin(0);
  for (unsigned i = 0; i < BusyPollPolicy::kLeaveThreshold; ++i) {
    EXPECT_TRUE(policy_.is_leader(0)) << i;
    serve(0, kQuick, BusyPollPolicy::kSlowReply + microseconds(1));
  }
  EXPECT_TRUE(ended_);
  EXPECT_FALSE(policy_.is_parked(1));
}

TEST_F(LoneServerTest, OneVeryLongAnswerIsNotWaitedFor) {
  begin(0);
  EXPECT_FALSE(policy_.ends_overdue(now_ + BusyPollPolicy::kLongPause)) << "it looks for a request and answers none";
  const BusyPollPolicy::Time taken_at = now_;
  policy_.on_request(0, now_, false);
  EXPECT_FALSE(policy_.ends_overdue(now_ + BusyPollPolicy::kStallLimit));
  EXPECT_TRUE(policy_.is_parked(1));
  EXPECT_TRUE(policy_.ends_overdue(now_ + BusyPollPolicy::kStallLimit + microseconds(1)));
  EXPECT_FALSE(policy_.is_parked(1));
  EXPECT_FALSE(policy_.ends_overdue(now_ + milliseconds(50)));
  EXPECT_FALSE(policy_.on_reply(0, taken_at, now_ + milliseconds(60))) << "no thread is woken twice";
  now_ += milliseconds(60);
  for (unsigned i = 1; i < BusyPollPolicy::kReenterThreshold; ++i)
    EXPECT_FALSE(serve(1));
  EXPECT_TRUE(serve(1)) << "it need not be slow again";
}

}  // namespace
}  // namespace cframefs::fs
