#include "frame/remote/http/hedge_policy.h"

#include <gtest/gtest.h>

namespace cframefs::test::hedge_policy_tests {
namespace {

using frame::HedgePolicy;
using std::chrono::milliseconds;

TEST(HedgePolicy, WaitsTheLeastTimeForAServerThatIsFastOrUnknown) {
  HedgePolicy policy(milliseconds(500));
  EXPECT_EQ(policy.patience(), milliseconds(500));
  for (int i = 0; i < 100; ++i)
    policy.note_first_byte(milliseconds(30));
  EXPECT_EQ(policy.patience(), milliseconds(500));
}

TEST(HedgePolicy, WaitsFourTimesTheMedianForAServerThatIsSlow) {
  HedgePolicy policy(milliseconds(500));
  for (int i = 0; i < 20; ++i)
    policy.note_first_byte(milliseconds(400));
  EXPECT_EQ(policy.patience(), milliseconds(1600));
  for (int i = 0; i < 10; ++i)  // less than half of those that count
    policy.note_first_byte(milliseconds(60'000));
  EXPECT_EQ(policy.patience(), milliseconds(1600));
}

TEST(HedgePolicy, ForgetsOldTimes) {
  HedgePolicy policy(milliseconds(500));
  for (int i = 0; i < 1000; ++i)
    policy.note_first_byte(milliseconds(4000));
  for (std::size_t i = 0; i < HedgePolicy::kRemembered; ++i)
    policy.note_first_byte(milliseconds(10));
  EXPECT_EQ(policy.patience(), milliseconds(500));
}

TEST(HedgePolicy, AllowsABurstAndThenOneRequestInTen) {
  HedgePolicy policy(milliseconds(500));
  unsigned hedges = 0;
  while (policy.takes_hedge())
    ++hedges;
  EXPECT_EQ(hedges, HedgePolicy::kBurst);
  hedges = 0;
  for (int i = 0; i < 1000; ++i) {
    policy.note_request();
    if (policy.takes_hedge()) ++hedges;
  }
  EXPECT_EQ(hedges, 100U);
}

TEST(HedgePolicy, SavesNoMoreThanTheBurst) {
  HedgePolicy policy(milliseconds(500));
  for (int i = 0; i < 100'000; ++i)
    policy.note_request();
  unsigned hedges = 0;
  while (policy.takes_hedge())
    ++hedges;
  EXPECT_EQ(hedges, HedgePolicy::kBurst);
}

}  // namespace
}  // namespace cframefs::test::hedge_policy_tests
