#include "frame/remote/access/system_surroundings.h"

#include <array>
#include <cerrno>
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <sstream>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using frame::SystemSurroundings;

std::string write_file(const TempDir& dir, const std::string& name, const std::string& text) {
  const std::vector<std::uint8_t> bytes(text.begin(), text.end());
  return dir.write(name, bytes).string();
}

int errno_of(const codec::Result<std::string>& result) {
  return result ? 0 : result.error().sys;
}

// NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads the environment
TEST(SystemSurroundings, ReadsVariablesAndTellsUnsetFromEmpty) {
  ::setenv("CFRAMEFS_TEST_VARIABLE", "", 1);
  const SystemSurroundings surroundings;
  EXPECT_EQ(surroundings.variable("CFRAMEFS_TEST_VARIABLE"), "");
  ::unsetenv("CFRAMEFS_TEST_VARIABLE");
  EXPECT_EQ(surroundings.variable("CFRAMEFS_TEST_VARIABLE"), std::nullopt);
}

TEST(SystemSurroundings, FindsTheHomeDirectoryWithoutTheVariable) {
  const SystemSurroundings surroundings;
  const auto before = surroundings.variable("HOME");
  ::setenv("HOME", "/some/home", 1);
  EXPECT_EQ(surroundings.home(), "/some/home");
  ::unsetenv("HOME");
  EXPECT_EQ(surroundings.home().substr(0, 1), "/");  // of the user database
  if (before) ::setenv("HOME", before->c_str(), 1);
}
// NOLINTEND(concurrency-mt-unsafe)

TEST(SystemSurroundings, ReadsFilesOfOneMebibyteAndNoLonger) {
  const TempDir dir;
  const SystemSurroundings surroundings;
  const std::string text(std::size_t{1} << 20U, 'x');
  EXPECT_EQ(surroundings.file(write_file(dir, "full", text)).value(), text);
  EXPECT_EQ(errno_of(surroundings.file(write_file(dir, "long", text + "y"))), EFBIG);
  EXPECT_EQ(surroundings.file(write_file(dir, "empty", "")).value(), "");
}

TEST(SystemSurroundings, FollowsLinksButReadsRegularFilesOnly) {
  const TempDir dir;
  const SystemSurroundings surroundings;
  const std::string file = write_file(dir, "file", "text");
  std::filesystem::create_symlink(file, dir.path() / "link");
  EXPECT_EQ(surroundings.file(dir.path() / "link").value(), "text");
  const std::string fifo = dir.path() / "fifo";
  ASSERT_EQ(::mkfifo(fifo.c_str(), 0600), 0);
  EXPECT_EQ(errno_of(surroundings.file(fifo)), EINVAL);  // and does not wait for a writer
  EXPECT_EQ(errno_of(surroundings.file(dir.path())), EINVAL);
  EXPECT_EQ(errno_of(surroundings.file("/dev/zero")), EINVAL);
  EXPECT_EQ(surroundings.file("/dev/null").value(), "");
}

TEST(SystemSurroundings, NamesAMissingFile) {
  const TempDir dir;
  const auto missing = SystemSurroundings().file(dir.path() / "missing");
  EXPECT_EQ(errno_of(missing), ENOENT);
  EXPECT_NE(missing.error().reason.find("missing"), std::string::npos);
}

TEST(SystemSurroundings, TellsWhetherOthersMayReadAFile) {
  const TempDir dir;
  const SystemSurroundings surroundings;
  const std::string file = write_file(dir, "file", "text");
  for (const auto& [mode, expected] :
       {std::pair<mode_t, bool>{0600, false}, {0400, false}, {0700, false}, {0640, true}, {0604, true}, {0644, true}}) {
    ASSERT_EQ(::chmod(file.c_str(), mode), 0);
    EXPECT_EQ(surroundings.is_readable_by_others(file).value(), expected) << std::oct << mode;
  }
  EXPECT_FALSE(surroundings.is_readable_by_others(dir.path() / "missing"));
}

TEST(SystemSurroundings, RunsACommandWithoutAShell) {
  EXPECT_EQ(SystemSurroundings().output_of({"printf", "%s|", "a b", "$HOME", "*", ""}).value(), "a b|$HOME|*||");
}

TEST(SystemSurroundings, ACommandThatFailsIsAnErrorWithoutItsArguments) {
  const SystemSurroundings surroundings;
  const auto failed = surroundings.output_of({"sh", "-c", "echo hush; exit 7"});
  EXPECT_EQ(errno_of(failed), EIO);
  EXPECT_NE(failed.error().reason.find("status 7"), std::string::npos);
  EXPECT_EQ(failed.error().reason.find("hush"), std::string::npos);
  const auto killed = surroundings.output_of({"sh", "-c", "kill -9 $$"});
  EXPECT_NE(killed.error().reason.find("signal 9"), std::string::npos);
  EXPECT_EQ(errno_of(surroundings.output_of({"/nonexistent/program"})), ENOENT);
  EXPECT_FALSE(surroundings.output_of({}));
  EXPECT_FALSE(surroundings.output_of({""}));
}

TEST(SystemSurroundings, ACommandHasNoInput) {
  EXPECT_EQ(SystemSurroundings().output_of({"cat"}).value(), "");
}

TEST(SystemSurroundings, ACommandInheritsNoDescriptorsOfThisProcess) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC), 0);
  const auto listed = SystemSurroundings().output_of({"ls", "/proc/self/fd"});
  ::close(ends[0]);
  ::close(ends[1]);
  ASSERT_TRUE(listed);
  std::istringstream numbers(*listed);
  int others = 0;
  for (int fd = 0; numbers >> fd;) {
    const int flags = ::fcntl(fd, F_GETFD);
    const bool is_of_the_test_run = flags >= 0 && (flags & FD_CLOEXEC) == 0;
    others += is_of_the_test_run ? 0 : 1;
  }
  EXPECT_LE(others, 1) << *listed;  // the directory that ls reads
}

TEST(SystemSurroundings, AnOutputIsBounded) {
  EXPECT_EQ(errno_of(SystemSurroundings().output_of({"yes"})), EFBIG);
  const auto full = SystemSurroundings().output_of({"head", "-c", "1048576", "/dev/zero"});
  EXPECT_EQ(full->size(), std::size_t{1} << 20U);
}

TEST(SystemSurroundings, ACommandThatHangsIsKilledWithItsChildren) {
  const SystemSurroundings surroundings(std::chrono::milliseconds(50));
  const auto begin = std::chrono::steady_clock::now();
  const TempDir dir;
  const std::string script = "echo $$ > " + (dir.path() / "pid").string() + "; sleep 100 & sleep 100";
  EXPECT_EQ(errno_of(surroundings.output_of({"sh", "-c", script})), ETIMEDOUT);
  // Also one that has closed its output.
  EXPECT_EQ(errno_of(surroundings.output_of({"sh", "-c", "exec >&-; sleep 100"})), ETIMEDOUT);
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(50));
}

TEST(SystemSurroundings, TheClockIsThatOfTheSystem) {
  EXPECT_NEAR(static_cast<double>(SystemSurroundings().now()), static_cast<double>(std::time(nullptr)), 5);
}

}  // namespace
}  // namespace cframefs::test
