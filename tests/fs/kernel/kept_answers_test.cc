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

/// An answer without a change during the look.
bool give_answer(KeptAnswers& kept, const frame::FileVersion& version) {
  return kept.answered(kept.begin_answer(), version);
}

TEST(KeptAnswers, AnAnswerIsKeptUntilItIsTaken) {
  KeptAnswers kept;
  EXPECT_TRUE(give_answer(kept, version(1)));
  EXPECT_TRUE(kept.take());
  EXPECT_FALSE(kept.take());
}

TEST(KeptAnswers, AnAnswerWithAChangeDuringTheLookIsNotKept) {
  KeptAnswers kept;
  const auto look = kept.begin_answer();
  EXPECT_FALSE(kept.take()) << "a notification would cross the answer";
  EXPECT_FALSE(kept.answered(look, version(1)));
  EXPECT_FALSE(kept.take());
}

TEST(KeptAnswers, AnAnswerFromBeforeAChangeIsNotKeptBesideALaterOne) {
  KeptAnswers kept;
  const auto before = kept.begin_answer();
  EXPECT_FALSE(kept.take());
  const auto after = kept.begin_answer();
  EXPECT_FALSE(kept.answered(before, version(1)));
  EXPECT_TRUE(kept.answered(after, version(2)));
  EXPECT_TRUE(kept.are_of(version(2)));
  EXPECT_TRUE(kept.take());
}

TEST(KeptAnswers, AnOpenOfTheVersionThatWasToldKeepsThem) {
  KeptAnswers kept;
  const auto look = kept.begin_answer();
  EXPECT_FALSE(kept.are_of(version(1))) << "the answer is not known yet";
  EXPECT_TRUE(kept.answered(look, version(1)));
  EXPECT_TRUE(kept.are_of(version(1)));
  EXPECT_FALSE(kept.are_of(version(2)));
}

TEST(KeptAnswers, AVersionThatMayHideAChangeIsNotTheSame) {
  KeptAnswers kept;
  EXPECT_TRUE(give_answer(kept, version(1, true)));
  EXPECT_FALSE(kept.are_of(version(1, false)));
}

TEST(KeptAnswers, OfTwoVersionsTheKernelMayHaveEither) {
  KeptAnswers kept;
  EXPECT_TRUE(give_answer(kept, version(1)));
  EXPECT_FALSE(give_answer(kept, version(2))) << "which the kernel must ask for again";
  EXPECT_FALSE(kept.are_of(version(1)));
  EXPECT_FALSE(kept.are_of(version(2)));
  EXPECT_TRUE(kept.take());
  EXPECT_TRUE(kept.are_of(version(3)));
  EXPECT_TRUE(give_answer(kept, version(3)));
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
