// Each call of an operation fails once, calls that only look included: what the mount shows afterwards is a state
// before or after one of the operation's steps, whole, and the disk holds what the mount shows.
#include <algorithm>

#include <gtest/gtest.h>

#include "tests/fs/operations.h"
#include "tests/support/failing_files.h"

namespace cframefs::fs {
namespace {

using test::FailingFiles;

class FailingOperations : public OperationsTest,
                          public ::testing::WithParamInterface<std::tuple<ProgramOperation, FailingFiles::How>> {};

TEST_P(FailingOperations, TheMountShowsAWholeStateAndTheDiskHoldsIt) {
  const auto& [operation, how] = GetParam();
  const std::vector<View> states = states_of(operation);
  int faults = 0;
  for (std::int64_t number = 1;; ++number) {
    make_source();
    const auto descriptors = open_descriptors();
    UnsyncedFiles unsynced(operation.has_flags);
    FailingFiles files(unsynced);
    files.count(how == FailingFiles::once ? FailingFiles::every : FailingFiles::changes);
    ProgramsMount mount(directory_.path(), files);
    for (const Step& step : operation.before)
      ASSERT_TRUE(step(mount));
    files.fail(number, how == FailingFiles::once ? EIO : ENOSPC, how);
    const auto failing = std::find_if(operation.steps.begin(), operation.steps.end(),
                                      [&](const Step& step) { return !step(mount).has_value(); });
    const bool is_done = failing == operation.steps.end();
    const auto failed = files.failed();
    files.stop();
    if (!failed) break;
    ++faults;
    SCOPED_TRACE("call " + std::to_string(number) + ", kind " + std::to_string(static_cast<int>(failed->kind)) + ", " +
                 failed->path + (is_done ? ": done" : ": failed"));
    const View shown = mount.view();
    check_shown(operation, states, static_cast<std::size_t>(failing - operation.steps.begin()), shown);
    mount.end();
    EXPECT_EQ(differences(on_disk(), shown), "");
    EXPECT_TRUE(failed->kind == test::FileCall::Kind::remove || hidden_files().empty()) << hidden_files();
    EXPECT_EQ(open_descriptors(), descriptors);
  }
  EXPECT_GT(faults, 3);
}

INSTANTIATE_TEST_SUITE_P(Faults, FailingOperations,
                         ::testing::Combine(::testing::ValuesIn(all_operations()),
                                            ::testing::Values(FailingFiles::once, FailingFiles::cut_short)),
                         [](const auto& instance) {
                           return std::string(std::get<0>(instance.param).name) +
                                  (std::get<1>(instance.param) == FailingFiles::once ? "" : "_cut_short");
                         });

}  // namespace
}  // namespace cframefs::fs
