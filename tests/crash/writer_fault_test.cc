// Every write, sync, truncation and rename of short scripts fails in turn: the caller is told, the frame holds a state
// that was committed, and once the fault is gone the same commit succeeds.
#include <cerrno>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/crash/crash_run.h"

namespace cframefs {
namespace {

using test::After;
using test::CrashRun;
using test::DiskCall;
using test::DiskImage;
using test::Fault;
using test::Judge;
using test::Script;
using test::ScriptLine;
using test::StartingFrame;
using test::Step;

class WriterFaultTest : public ::testing::Test {
 protected:
  /// Runs `script`, the changing call number `number` of its last line failing. False: it has not so many.
  bool run_with_fault(const Script& script, std::int64_t number, Fault fault) {
    CrashRun run(judge_, start_->image, start_->model);
    EXPECT_TRUE(run.open());
    run.watch(number == 1);
    for (std::size_t i = 0; i + 1 < script.size(); ++i)
      EXPECT_TRUE(run.run(script[i]));
    run.watch(true);
    run.disk().fail(number, fault);
    const auto done = run.run(script.back());
    const bool came = run.disk().failed();
    run.disk().fail(0, fault);
    if (!came) {
      EXPECT_TRUE(done);
      return false;
    }
    ++faults_;
    EXPECT_FALSE(done) << "the fault is not told";
    if (done) return false;
    EXPECT_EQ(done.error().sys, fault == Fault::io_error ? EIO : ENOSPC) << codec::describe(done.error());
    run.look();
    run.look_without_cut();
    if (run.disk().failed_call() == DiskCall::sync) {
      after_failed_sync(run);
    } else {
      after_fault(run, script.back());
    }
    EXPECT_EQ(run.failure(), "");
    return true;
  }

  /// Nothing is known of what is on disk: every commit fails until the frame is opened again.
  static void after_failed_sync(CrashRun& run) {
    EXPECT_EQ(run.writer()->commit(frame::Durability::durable).error().sys, EIO);
    EXPECT_EQ(run.writer()->commit(frame::Durability::ordered).error().sys, EIO);
    const auto opened = run.open();
    EXPECT_TRUE(opened) << codec::describe(opened.error());
  }

  /// The old state is there, and what was pending still is.
  static void after_fault(CrashRun& run, const ScriptLine& line) {
    const auto again =
        line.step == Step::compact ? run.writer()->compact() : run.writer()->commit(frame::Durability::durable);
    EXPECT_TRUE(again) << codec::describe(again.error());
    if (!again) return;
    const auto read = test::read_model(*run.writer()->container());
    EXPECT_TRUE(read);
    EXPECT_TRUE(read && *read == run.model()) << "the commit that was tried again lost something";
    run.look_without_cut();
  }

  void every_fault(const Script& script) {
    for (const Fault fault : {Fault::io_error, Fault::no_space, Fault::cut_short}) {
      for (std::int64_t number = 1; run_with_fault(script, number, fault); ++number) {
        if (HasFailure()) {
          ADD_FAILURE() << describe(script) << ": call " << number << ", fault " << static_cast<int>(fault);
          return;
        }
      }
    }
  }

  const StartingFrame contiguous_;
  const StartingFrame sparse_{StartingFrame::Kind::sparse};
  const StartingFrame* start_ = &contiguous_;
  Judge judge_;
  std::uint64_t faults_ = 0;
};

TEST_F(WriterFaultTest, EveryCallOfOneStep) {
  for (int step = 0; step < test::kSteps; ++step) {
    for (const After after : {After::ordered, After::durable})
      every_fault({{static_cast<Step>(step), after}});
  }
  std::printf("%llu faults\n", static_cast<unsigned long long>(faults_));
  EXPECT_GT(faults_, 100U);
}

TEST_F(WriterFaultTest, EveryCallOfOneStepOnASparseFrame) {
  start_ = &sparse_;
  for (int step = 0; step < test::kSteps; ++step) {
    for (const After after : {After::ordered, After::durable})
      every_fault({{static_cast<Step>(step), after}});
  }
  EXPECT_GT(faults_, 100U);
}

TEST_F(WriterFaultTest, EveryCallOfASecondStep) {
  for (int first = 0; first < test::kSteps; ++first) {
    for (const After between : {After::nothing, After::ordered, After::durable}) {
      for (int second = 0; second < test::kSteps && !HasFailure(); ++second) {
        for (const After after : {After::ordered, After::durable})
          every_fault({{static_cast<Step>(first), between}, {static_cast<Step>(second), after}});
      }
    }
  }
  std::printf("%llu faults\n", static_cast<unsigned long long>(faults_));
}

/// What a crash left behind a frame could not be cut off: the frame is as it was.
TEST_F(WriterFaultTest, TheTailOfAnUnfinishedCommitCannotBeCut) {
  DiskImage image = start_->image;
  image[test::kFrameName].resize(image[test::kFrameName].size() + 5000, 0xaa);
  CrashRun run(judge_, image, start_->model);
  ASSERT_TRUE(run.open());
  ASSERT_TRUE(run.step(Step::append_part));
  run.disk().fail(1, Fault::io_error);
  const auto done = run.commit(After::durable);
  ASSERT_FALSE(done);
  EXPECT_EQ(run.disk().failed_call(), DiskCall::truncate);
  after_fault(run, {Step::append_part, After::durable});
  EXPECT_EQ(run.failure(), "");
}

}  // namespace
}  // namespace cframefs
