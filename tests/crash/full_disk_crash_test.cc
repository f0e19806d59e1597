// Power cuts on a full disk: no file can be created, and dead bytes are punched after each commit.
#include <cerrno>
#include <cstdio>
#include <random>

#include <gtest/gtest.h>

#include "tests/crash/crash_run.h"
#include "tests/support/frame_builder.h"
#include "tests/support/sanitizers.h"

namespace cframefs {
namespace {

using test::After;
using test::CrashRun;
using test::Judge;
using test::Script;
using test::StartingFrame;
using test::Step;

constexpr Step kFullDiskSteps[] = {Step::write_inside, Step::append_part, Step::append_chunks, Step::extend,
                                   Step::truncate,     Step::empty,       Step::punch,         Step::set_vlmetalayer};

/// A frame with chunks larger than a block, so that dead chunks can be punched.
StartingFrame large_frame() {
  StartingFrame start;
  start.model.chunksize = 9000;
  start.model.plain = test::pattern(9000 * 5 / 2, 1);
  start.image[test::kFrameName] = test::plain_frame(start.model.plain, 9000).build();
  return start;
}

void run_on_full_disk(Judge& judge, const StartingFrame& start, const Script& script, std::uint64_t& punched) {
  CrashRun run(judge, start.image, start.model);
  run.files().count([](const test::FileCall& call) { return call.kind == test::FileCall::Kind::create; });
  run.files().fail(1, ENOSPC, test::FailingFiles::for_good);
  run.punch_after_commits();
  const auto opened = run.open();
  ASSERT_TRUE(opened) << codec::describe(opened.error());
  const auto done = run.run(script);
  // Only an empty frame that gets a longer trailer needs a new file.
  if (!done) {
    ASSERT_EQ(done.error().sys, ENOSPC) << describe(script);
    ASSERT_TRUE(run.model().plain.empty()) << describe(script);
    run.look();
  }
  ASSERT_EQ(run.failure(), "") << describe(script);
  punched += run.punched_bytes();
}

// semantics: C3, C14, C16
TEST(FullDiskCrashTest, EveryScriptOfUpToTwoSteps) {
  Judge judge;
  std::uint64_t punched = 0;
  std::uint64_t scripts = 0;
  const StartingFrame small;
  const StartingFrame large = large_frame();
  for (const Step first : kFullDiskSteps) {
    for (const Step second : kFullDiskSteps) {
      for (const After after : {After::nothing, After::ordered, After::durable}) {
        if (!test::takes_case(scripts++)) continue;
        run_on_full_disk(judge, small, {{first, after}, {second, After::ordered}}, punched);
        if (after != After::durable)
          run_on_full_disk(judge, large, {{first, after}, {second, After::ordered}}, punched);
        if (HasFatalFailure()) return;
      }
    }
  }
  std::printf("full disk: %llu states after a cut, %llu of them different, %llu bytes given back\n",
              static_cast<unsigned long long>(judge.states()),
              static_cast<unsigned long long>(judge.different_states()), static_cast<unsigned long long>(punched));
  EXPECT_GT(judge.different_states(), test::steps(30'000U));
  EXPECT_GT(punched, test::steps(std::uint64_t{512} << 10));
}

TEST(FullDiskCrashTest, LongScripts) {
  Judge judge;
  const StartingFrame start = large_frame();
  std::uint64_t punched = 0;
  for (unsigned seed = 0; seed < 15; ++seed) {
    std::mt19937 random(seed);
    Script script;
    for (int i = 0; i < 12; ++i)
      script.push_back({kFullDiskSteps[random() % std::size(kFullDiskSteps)], static_cast<After>(random() % 3)});
    script.push_back({Step::append_part, After::durable});
    run_on_full_disk(judge, start, script, punched);
    if (HasFatalFailure()) return;
  }
  EXPECT_GT(judge.different_states(), 1'000U);
  EXPECT_GT(punched, std::uint64_t{256} << 10);
}

}  // namespace
}  // namespace cframefs
