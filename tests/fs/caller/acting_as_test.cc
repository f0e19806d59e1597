// The umask of a caller, which the thread that serves it has for one call.
#include "fs/caller/acting_as.h"

#include <string>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

class CallersUmaskTest : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!CallersUmask::is_possible()) GTEST_SKIP() << "the system refuses unshare(CLONE_FS)";
  }
  /// Returns the mode of a file that the calling thread creates with mode 0666.
  mode_t mode_of_new(const std::string& name) const {
    const std::string path = directory_.path() / name;
    const int file = ::open(path.c_str(), O_WRONLY | O_CREAT | O_CLOEXEC, 0666);
    struct stat status {};
    EXPECT_EQ(::fstat(file, &status), 0);
    ::close(file);
    return status.st_mode & 07777U;
  }
  test::TempDir directory_;
};

TEST_F(CallersUmaskTest, AThreadHasTheUmaskOfItsCallerAndOtherThreadsDoNot) {
  const mode_t usual = mode_of_new("usual");
  mode_t during = 0;
  mode_t after = 0;
  std::thread server([&] {
    ASSERT_TRUE(CallersUmask::is_possible());
    {
      const CallersUmask umask({0, 0, 0, 0077});
      during = mode_of_new("during");
    }
    after = mode_of_new("after");
  });
  server.join();
  EXPECT_EQ(during, 0600U);
  EXPECT_EQ(after, usual);
  const CallersUmask own({0, 0, 0, 0027});
  EXPECT_EQ(mode_of_new("own"), 0640U);
  std::thread([&] {
    ASSERT_TRUE(CallersUmask::is_possible());
    const CallersUmask umask({0, 0, 0, 0007});
    EXPECT_EQ(mode_of_new("other"), 0660U);
  }).join();
  EXPECT_EQ(mode_of_new("own again"), 0640U);
}

}  // namespace
}  // namespace cframefs::fs
