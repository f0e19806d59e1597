// Allocations of an operation fail, one or three in a row: it returns ENOMEM or succeeds, what the mount shows
// afterwards is a state before or after one of its steps, whole, the disk holds what the mount shows, and nothing is
// left behind.
#include <algorithm>
#include <cerrno>

#include <gtest/gtest.h>

#include "fs/util/errno_table.h"
#include "fs/util/no_memory.h"
#include "tests/fs/operations.h"
#include "tests/fs/util/failing_allocations.h"
#include "tests/support/sanitizers.h"

namespace cframefs::fs {
namespace {

class NoMemoryForOperations : public OperationsTest, public ::testing::WithParamInterface<ProgramOperation> {
 protected:
  /// Checks what is there after a call of step number `failing` has failed; after all steps, if that is their count.
  void check_state(ProgramsMount& mount, const std::vector<View>& states, std::size_t failing) const {
    const View shown = mount.view();
    // After a write that was made in part only the disk is looked at.
    if (!mount.has_failed_write()) check_shown(GetParam(), states, failing, shown);
    mount.end();
    EXPECT_EQ(differences(on_disk(), shown), "");
    EXPECT_TRUE(hidden_files().empty()) << hidden_files();
  }
};

TEST_P(NoMemoryForOperations, AWholeStateIsLeftAndNothingElse) {
  const ProgramOperation& operation = GetParam();
  const std::vector<View> states = states_of(operation);
  int faults = 0;
  for (std::int64_t number = 0;; ++number) {
    if (!test::takes_case(static_cast<std::uint64_t>(number))) continue;
    make_source();
    const auto descriptors = open_descriptors();
    UnsyncedFiles files(operation.has_flags);
    ProgramsMount mount(directory_.path(), files);
    for (const Step& step : operation.before)
      ASSERT_TRUE(step(mount));
    fail_allocations(number, number % 2 == 0 ? 1 : 3);
    int error = 0;
    const auto failing = std::find_if(operation.steps.begin(), operation.steps.end(), [&](const Step& step) {
      const Done done = or_no_memory([&] { return step(mount); });
      if (!done) error = to_errno(done.error());
      return !done;
    });
    if (!stop_failing_allocations()) break;
    ++faults;
    SCOPED_TRACE("allocation " + std::to_string(number) + ", step " +
                 std::to_string(failing - operation.steps.begin()));
    // Programs copy by read(2) and write(2) after EOPNOTSUPP.
    EXPECT_TRUE(error == 0 || error == ENOMEM || (error == EOPNOTSUPP && !operation.is_whole)) << error;
    check_state(mount, states, static_cast<std::size_t>(failing - operation.steps.begin()));
    EXPECT_EQ(open_descriptors(), descriptors);
    if (HasFailure()) break;
  }
  EXPECT_GT(faults, test::steps(80));
}

INSTANTIATE_TEST_SUITE_P(Each, NoMemoryForOperations, ::testing::ValuesIn(all_operations()),
                         [](const auto& instance) { return std::string(instance.param.name); });

}  // namespace
}  // namespace cframefs::fs
