#include "fs/kernel/kept_answers.h"

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

frame::FileVersion version(std::int64_t ctime_ns, bool racy = false) {
  frame::FileVersion file;
  file.inode = 7;
  file.ctime_ns = ctime_ns;
  file.racy = racy;
  return file;
}

TEST(KeptAnswers, NothingIsKeptBeforeAnAnswer) {
  KeptAnswers kept;
  EXPECT_FALSE(kept.take());
  EXPECT_TRUE(kept.are_of(version(1)));
}

TEST(KeptAnswers, AChangeDuringTheExaminationIsPassedOnAndTheAnswerNotKept) {
  KeptAnswers kept;
  kept.begin_answer();
  EXPECT_TRUE(kept.take());
  EXPECT_FALSE(kept.answered(version(1)));
  EXPECT_FALSE(kept.take());
}

TEST(KeptAnswers, AnOpenOfTheVersionThatWasToldKeepsThem) {
  KeptAnswers kept;
  kept.begin_answer();
  EXPECT_FALSE(kept.are_of(version(1))) << "the answer is not known yet";
  EXPECT_TRUE(kept.answered(version(1)));
  EXPECT_TRUE(kept.are_of(version(1)));
  EXPECT_FALSE(kept.are_of(version(2)));
}

TEST(KeptAnswers, AVersionThatMayHideAChangeIsNotTheSame) {
  KeptAnswers kept;
  kept.begin_answer();
  EXPECT_TRUE(kept.answered(version(1, true)));
  EXPECT_FALSE(kept.are_of(version(1, false)));
}

TEST(KeptAnswers, OfTwoVersionsTheKernelMayHaveEither) {
  KeptAnswers kept;
  kept.begin_answer();
  EXPECT_TRUE(kept.answered(version(1)));
  kept.begin_answer();
  EXPECT_FALSE(kept.answered(version(2))) << "which the kernel must ask for again";
  EXPECT_FALSE(kept.are_of(version(1)));
  EXPECT_FALSE(kept.are_of(version(2)));
  EXPECT_TRUE(kept.take());
  EXPECT_TRUE(kept.are_of(version(3)));
  kept.begin_answer();
  EXPECT_TRUE(kept.answered(version(3)));
  EXPECT_TRUE(kept.are_of(version(3)));
}

TEST(KeptAnswers, ANameIsTakenOnce) {
  KeptAnswers kept;
  EXPECT_FALSE(kept.take_name());
  kept.name_answered();
  EXPECT_TRUE(kept.take_name());
  EXPECT_FALSE(kept.take_name());
}

}  // namespace
}  // namespace cframefs::fs
