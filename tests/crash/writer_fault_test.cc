// Every call of short scripts fails in turn, alone or with all calls after it. The writer returns the error, the frame
// holds a committed state, and the same commit succeeds after the fault is gone.
#include <cerrno>
#include <cstdio>

#include <gtest/gtest.h>

#include "tests/crash/crash_run.h"
#include "tests/support/sanitizers.h"

namespace cframefs {
namespace {

using test::After;
using test::CrashRun;
using test::DiskImage;
using test::FailingFiles;
using test::FileCall;
using test::Judge;
using test::Script;
using test::ScriptLine;
using test::StartingFrame;
using test::Step;

/// How a call fails.
struct Fault {
  int error = EIO;
  FailingFiles::How how = FailingFiles::once;
};

class WriterFaultTest : public ::testing::Test {
 protected:
  /// Runs `script` and fails counted call number `number` of its last line. Returns false if the line has fewer calls.
  bool run_with_fault(const Script& script, std::int64_t number, const Fault& fault) {
    CrashRun run(judge_, start_->image, start_->model);
    EXPECT_TRUE(run.open());
    run.watch(number == 1);
    for (std::size_t i = 0; i + 1 < script.size(); ++i)
      EXPECT_TRUE(run.run(script[i]));
    run.watch(true);
    run.files().count(counted_);
    run.files().fail(number, fault.error, fault.how);
    auto done = run.step(script.back().step);
    const bool is_pending = done.has_value();
    if (done) done = run.commit(script.back().after);
    const auto failed = run.files().failed();
    run.files().stop();
    if (!failed) {
      EXPECT_TRUE(done);
      return false;
    }
    ++faults_;
    if (done) {
      // On a full disk a frame that becomes empty needs no new file, and an append goes without digests.
      const bool goes_without_digests =
          failed->kind == FileCall::Kind::write && run.writer()->container()->as_frame()->seal() == nullptr;
      const bool is_overcome = fault.error == ENOSPC && failed->kind != FileCall::Kind::sync &&
                               (run.model().plain.empty() || goes_without_digests);
      EXPECT_TRUE(is_overcome || !must_be_reported(*failed)) << "no error for the fault of a " << name_of(*failed);
      expect_state(run, "a fault without an error lost data");
    } else {
      EXPECT_TRUE(done.error().sys == fault.error) << codec::describe(done.error());
      run.look();
      run.look_without_cut();
      // A step that failed left no pending change.
      if (!is_pending && script.back().step != Step::compact) {
        EXPECT_TRUE(run.step(script.back().step));
      }
      after_fault(run, script.back(), *failed, fault);
    }
    EXPECT_EQ(run.failure(), "");
    if (HasFailure()) ADD_FAILURE() << "after a fault of a " << name_of(*failed) << " " << failed->path;
    return true;
  }

  static std::string name_of(const FileCall& call) {
    return "call of kind " + std::to_string(static_cast<int>(call.kind));
  }

  /// Returns false for calls whose failure the writer may ignore: calls that change nothing, removals and locks.
  static bool must_be_reported(const FileCall& call) {
    using Kind = FileCall::Kind;
    return FailingFiles::changes(call) && call.kind != Kind::remove && call.kind != Kind::lock;
  }

  static void expect_state(CrashRun& run, const char* what) {
    const auto read = test::read_model(*run.writer()->container());
    EXPECT_TRUE(read);
    EXPECT_TRUE(read && *read == run.model()) << what;
    run.look_without_cut();
  }

  /// Checks that the old state is on disk and the changes are still pending. After a failed sync, checks instead that
  /// every commit fails until the frame is opened again.
  static void after_fault(CrashRun& run, const ScriptLine& line, const FileCall& failed, const Fault& fault) {
    const bool goes_on = fault.how == FailingFiles::for_good || fault.how == FailingFiles::cut_short_for_good;
    const bool must_fail = failed.kind == FileCall::Kind::sync;
    const bool must_succeed = !goes_on && !must_fail && FailingFiles::changes(failed);
    const auto again = line.step == Step::compact ? run.step(Step::compact) : run.commit(After::durable);
    if (again) {
      EXPECT_FALSE(must_fail) << "a commit succeeds after a failed sync";
      return expect_state(run, "the second commit lost data");
    }
    EXPECT_FALSE(must_succeed) << codec::describe(again.error());
    EXPECT_EQ(again.error().sys, EIO) << codec::describe(again.error());
    EXPECT_EQ(run.writer()->commit(frame::Durability::ordered).error().sys, EIO);
    const auto opened = run.open();
    EXPECT_TRUE(opened) << codec::describe(opened.error());
  }

  void every_fault(const Script& script, const std::vector<Fault>& faults) {
    for (const Fault& fault : faults) {
      for (std::int64_t number = 1; run_with_fault(script, number, fault); ++number) {
        if (HasFailure()) {
          ADD_FAILURE() << describe(script) << ": call " << number << ", error " << fault.error << ", how "
                        << fault.how;
          return;
        }
      }
    }
  }

  /// Injects faults into each step on each kind of frame.
  void every_fault_of_one_step(const std::vector<Fault>& faults) {
    for (const StartingFrame* start : {&contiguous_, &sparse_}) {
      start_ = start;
      for (int step = 0; step < test::kSteps; ++step) {
        for (const After after : {After::ordered, After::durable})
          every_fault({{static_cast<Step>(step), after}}, faults);
      }
    }
    std::printf("%llu faults\n", static_cast<unsigned long long>(faults_));
  }

  static std::vector<Fault> faults_of_changes() {
    return {{EIO, FailingFiles::once}, {ENOSPC, FailingFiles::once}, {ENOSPC, FailingFiles::cut_short}};
  }

  const StartingFrame contiguous_;
  const StartingFrame sparse_{StartingFrame::Kind::sparse};
  const StartingFrame* start_ = &contiguous_;
  FailingFiles::Wanted counted_ = FailingFiles::changes;
  Judge judge_;
  std::uint64_t faults_ = 0;
};

TEST_F(WriterFaultTest, EveryChangingCallOfOneStep) {
  every_fault_of_one_step(faults_of_changes());
  EXPECT_GT(faults_, 800U);
}

TEST_F(WriterFaultTest, EveryChangingCallOfOneStepAndAllCallsAfterIt) {
  every_fault_of_one_step({{EIO, FailingFiles::for_good}, {ENOSPC, FailingFiles::cut_short_for_good}});
  EXPECT_GT(faults_, 500U);
}

TEST_F(WriterFaultTest, EveryReadingCallOfOneStepOnceAndForGood) {
  counted_ = FailingFiles::looks;
  every_fault_of_one_step({{EIO, FailingFiles::once}, {EIO, FailingFiles::for_good}, {EMFILE, FailingFiles::once}});
  EXPECT_GT(faults_, 1000U);
}

TEST_F(WriterFaultTest, EveryCallOfASecondStep) {
  std::uint64_t scripts = 0;
  for (int first = 0; first < test::kSteps; ++first) {
    for (const After between : {After::nothing, After::ordered, After::durable}) {
      for (int second = 0; second < test::kSteps && !HasFailure(); ++second) {
        for (const After after : {After::ordered, After::durable}) {
          if (!test::takes_case(scripts++)) continue;
          every_fault({{static_cast<Step>(first), between}, {static_cast<Step>(second), after}}, faults_of_changes());
        }
      }
    }
  }
  std::printf("%llu faults\n", static_cast<unsigned long long>(faults_));
}

/// If bytes that a crash left after the frame cannot be truncated, the frame stays as it was.
TEST_F(WriterFaultTest, TheTailOfAnUnfinishedCommitCannotBeCut) {
  DiskImage image = start_->image;
  image[test::kFrameName].resize(image[test::kFrameName].size() + 5000, 0xaa);
  CrashRun run(judge_, image, start_->model);
  ASSERT_TRUE(run.open());
  ASSERT_TRUE(run.step(Step::append_part));
  const Fault fault{EIO, FailingFiles::once};
  run.files().count([](const FileCall& call) { return call.kind == FileCall::Kind::truncate; });
  run.files().fail(1, fault.error, fault.how);
  const auto done = run.commit(After::durable);
  run.files().stop();
  ASSERT_FALSE(done);
  ASSERT_TRUE(run.files().failed());
  after_fault(run, {Step::append_part, After::durable}, *run.files().failed(), fault);
  EXPECT_EQ(run.failure(), "");
}

}  // namespace
}  // namespace cframefs
