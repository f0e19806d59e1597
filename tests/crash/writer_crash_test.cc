// Power cuts at every moment of every short script. After a cut, the frame holds a committed state that is not older
// than the last one acknowledged as durable.
#include <cstdio>
#include <random>

#include <gtest/gtest.h>

#include "tests/crash/crash_run.h"
#include "tests/support/sanitizers.h"

namespace cframefs {
namespace {

using test::After;
using test::CrashRun;
using test::DiskImage;
using test::FrameModel;
using test::Judge;
using test::Script;
using test::StartingFrame;
using test::Step;

/// `watched`: number of last lines during which every sync is checked. `readers`: as CrashRun::keep_readers().
void run_script(Judge& judge, const StartingFrame& start, const Script& script, std::size_t watched,
                std::size_t readers = 0) {
  CrashRun run(judge, start.image, start.model);
  run.keep_readers(readers);
  const auto opened = run.open();
  ASSERT_TRUE(opened) << codec::describe(opened.error());
  for (std::size_t i = 0; i < script.size(); ++i) {
    run.watch(i + watched >= script.size());
    const auto done = run.run(script[i]);
    ASSERT_TRUE(done) << describe(script) << ": " << codec::describe(done.error());
  }
  run.look();
  ASSERT_EQ(run.failure(), "") << describe(script);
}

/// Runs one of all scripts up to some length. Checks only the last line, because shorter scripts have checked the lines
/// before.
void run_one_of_every(Judge& judge, const StartingFrame& start, const Script& script) {
  run_script(judge, start, script, 1);
}

/// Calls `take` with every script of `length` steps that ends with a commit.
void every_script(std::size_t length, Script& script, const std::function<void(const Script&)>& take) {
  if (script.size() == length) {
    take(script);
    return;
  }
  const bool last = script.size() + 1 == length;
  for (int step = 0; step < test::kSteps; ++step) {
    for (const After after : {After::nothing, After::ordered, After::durable}) {
      if (last && after == After::nothing) continue;
      script.push_back({static_cast<Step>(step), after});
      every_script(length, script, take);
      script.pop_back();
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

void report(const char* what, std::uint64_t scripts, const Judge& judge) {
  std::printf("%s: %llu scripts, %llu states after a cut, %llu of them different\n", what,
              static_cast<unsigned long long>(scripts), static_cast<unsigned long long>(judge.states()),
              static_cast<unsigned long long>(judge.different_states()));
}

// semantics: T2, C3
TEST(WriterCrashTest, EveryScriptOfUpToThreeSteps) {
  const StartingFrame start;
  Judge judge;
  std::uint64_t number = 0;
  std::uint64_t scripts = 0;
  for (std::size_t length = 1; length <= 3; ++length) {
    Script script;
    every_script(length, script, [&](const Script& complete) {
      if (!test::takes_case(number++)) return;
      ++scripts;
      run_one_of_every(judge, start, complete);
    });
    if (HasFatalFailure()) return;
  }
  report("up to three steps", scripts, judge);
  EXPECT_GT(judge.states(), test::steps(100'000U));
  EXPECT_GT(judge.different_states(), test::steps(60'000U));
}

// semantics: C3
TEST(WriterCrashTest, EveryScriptOfUpToTwoStepsOnASparseFrame) {
  const StartingFrame start(StartingFrame::Kind::sparse);
  Judge judge;
  std::uint64_t scripts = 0;
  for (std::size_t length = 1; length <= 2; ++length) {
    Script script;
    every_script(length, script, [&](const Script& complete) {
      ++scripts;
      run_one_of_every(judge, start, complete);
    });
    if (HasFatalFailure()) return;
  }
  report("sparse frames", scripts, judge);
  EXPECT_GT(judge.states(), 10'000U);
  EXPECT_GT(judge.different_states(), 1'400U);
}

/// Readers hold older states while the writer commits. They read the content of these states, and the files that are
/// kept for them do not invalidate the states after a cut.
TEST(WriterCrashTest, ScriptsOnASparseFrameWithReaders) {
  const StartingFrame start(StartingFrame::Kind::sparse);
  Judge judge;
  constexpr unsigned kScripts = 40;
  for (unsigned seed = 0; seed < kScripts; ++seed) {
    std::mt19937 random(seed);
    Script script;
    for (int i = 0; i < 12; ++i)
      script.push_back({static_cast<Step>(random() % test::kSteps), static_cast<After>(random() % 3)});
    script.push_back({Step::append_part, After::durable});
    run_script(judge, start, script, script.size(), 1 + seed % 4);
    if (HasFatalFailure()) return;
  }
  report("sparse frames beside readers", kScripts, judge);
  EXPECT_GT(judge.different_states(), 1'000U);
}

TEST(WriterCrashTest, LongScripts) {
  const StartingFrame start;
  Judge judge;
  constexpr unsigned kScripts = 60;
  for (unsigned seed = 0; seed < kScripts; ++seed) {
    std::mt19937 random(seed);
    Script script;
    for (int i = 0; i < 25; ++i)
      script.push_back({static_cast<Step>(random() % test::kSteps), static_cast<After>(random() % 3)});
    script.push_back({Step::append_part, After::durable});
    run_script(judge, start, script, script.size());
    if (HasFatalFailure()) return;
  }
  report("long scripts", kScripts, judge);
  EXPECT_GT(judge.different_states(), 15'000U);
}

/// Opens and changes the states after a cut, and cuts the power again.
TEST(WriterCrashTest, CutsDuringRecovery) {
  const StartingFrame start;
  Judge judge;
  Judge second;
  std::uint64_t recoveries = 0;
  judge.on_new_state = [&](const DiskImage& image, const FrameModel& model) {
    for (const Step step : {Step::write_inside, Step::append_chunks, Step::empty, Step::compact}) {
      ++recoveries;
      CrashRun run(second, image, model);
      const auto opened = run.open();
      ASSERT_TRUE(opened) << codec::describe(opened.error());
      const auto done = run.run(Script{{step, After::durable}});
      ASSERT_TRUE(done) << codec::describe(done.error());
      ASSERT_EQ(run.failure(), "");
    }
  };
  std::uint64_t scripts = 0;
  for (std::size_t length = 1; length <= 2; ++length) {
    Script script;
    every_script(length, script, [&](const Script& complete) {
      if (!test::takes_case(scripts++)) return;
      run_one_of_every(judge, start, complete);
      if (HasFatalFailure()) ADD_FAILURE() << describe(complete);
    });
    if (HasFatalFailure()) return;
  }
  report("recovery", recoveries, second);
  EXPECT_GT(second.different_states(), test::steps(30'000U));
}

/// Judge reports invalid states.
TEST(WriterCrashTest, TheJudgeReportsInvalidStates) {
  const StartingFrame start;
  Judge judge;
  FrameModel other = start.model;
  other.plain[0] ^= 1;
  EXPECT_EQ(judge.judge(start.image, {start.model}, 0), "");
  EXPECT_NE(judge.judge(start.image, {other}, 0), "");
  EXPECT_NE(judge.judge(start.image, {start.model, other}, 1), "");
  DiskImage damaged = start.image;
  damaged[test::kFrameName].resize(100);
  EXPECT_NE(judge.judge(damaged, {start.model}, 0), "");
  EXPECT_NE(judge.judge({}, {start.model}, 0), "");
}

}  // namespace
}  // namespace cframefs
