// The watcher's reports: complete, and in batches if many changes follow one another.
#include "fs/tree/watcher.h"

#include <chrono>
#include <map>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

using Clock = std::chrono::steady_clock;

class WatcherTest : public ::testing::Test {
 protected:
  void SetUp() override {
    descriptor_ = ::open(directory_.path().c_str(), O_RDONLY | O_DIRECTORY);
    ASSERT_GE(descriptor_, 0);
    ASSERT_TRUE(watcher_.watch(descriptor_, kDirectory));
    watcher_.start();
  }
  void TearDown() override {
    watcher_.stop();
    ::close(descriptor_);
  }
  int reports_of(const std::string& name) {
    codec::MutexLock lock(mutex_);
    const auto found = reports_.find(name);
    return found == reports_.end() ? 0 : found->second;
  }
  void wait_for_report_of(const std::string& name) {
    while (reports_of(name) == 0)
      ::usleep(100);
  }

  static constexpr std::uint64_t kDirectory = 7;
  test::TempDir directory_;
  int descriptor_ = -1;
  codec::Mutex mutex_;
  std::map<std::string, int> reports_ GUARDED_BY(mutex_);
  Watcher watcher_{[this](const Watcher::Change& change) {
    EXPECT_EQ(change.directory, kDirectory);
    codec::MutexLock lock(mutex_);
    ++reports_[change.name];
  }};
};

TEST_F(WatcherTest, ManyWritesOfAFileAreReportedOnceEachInterval) {
  const auto begin = Clock::now();
  const int file = ::open((directory_.path() / "x").c_str(), O_WRONLY | O_CREAT, 0600);
  ASSERT_GE(file, 0);
  for (int i = 0; i < 2000; ++i) {
    ASSERT_EQ(::write(file, "x", 1), 1);
    ::usleep(20);
  }
  ::close(file);
  directory_.write("last", {});
  wait_for_report_of("last");
  const auto intervals = (Clock::now() - begin) / Watcher::kBatchInterval;
  EXPECT_GE(reports_of("x"), 1);
  EXPECT_LE(reports_of("x"), intervals + 2);
}

TEST_F(WatcherTest, EachChangedNameIsReported) {
  for (int i = 0; i < 500; ++i)
    directory_.write("f" + std::to_string(i), {});
  for (int i = 0; i < 500; ++i)
    wait_for_report_of("f" + std::to_string(i));
}

TEST_F(WatcherTest, TemporaryFilesAreReportedAsChangesOfTheDirectory) {
  directory_.write(".cframefs-tmp.1.b2frame", {});
  wait_for_report_of("");
  directory_.write(".cframefs-tmp.2.b2frame", {});
  directory_.write("last", {});
  wait_for_report_of("last");
  EXPECT_EQ(reports_of(".cframefs-tmp.1.b2frame"), 0);
  EXPECT_EQ(reports_of(".cframefs-tmp.2.b2frame"), 0);
}

TEST_F(WatcherTest, ChangesOfNamesAreKnownOnceTheirCallHasReturned) {
  const std::vector<std::string> some{"a", "b", "c"};  // so that the first rename does not leave it empty
  watcher_.names().end_listing(kDirectory, watcher_.names().begin_listing(kDirectory, WatchedNames::kFewLooks), &some);
  ASSERT_TRUE(watcher_.names().is_listed(kDirectory))
      << "the filesystem of " << directory_.path() << " is none of a machine";
  const std::string path = directory_.path().string() + "/";
  const auto knows = [&](const std::string& name) {
    watcher_.catch_up();
    return !watcher_.names().lacks(kDirectory, name);
  };
  for (int i = 0; i < 300; ++i) {
    const std::string number = std::to_string(i);
    EXPECT_FALSE(knows("file" + number));
    directory_.write("file" + number, {});
    EXPECT_TRUE(knows("file" + number));
    ASSERT_EQ(::rename((path + "file" + number).c_str(), (path + "moved" + number).c_str()), 0);
    EXPECT_TRUE(knows("moved" + number));
    ASSERT_EQ(::link((path + "moved" + number).c_str(), (path + "link" + number).c_str()), 0);
    EXPECT_TRUE(knows("link" + number));
    ASSERT_EQ(::symlink("x", (path + "symlink" + number).c_str()), 0);
    EXPECT_TRUE(knows("symlink" + number));
    ASSERT_EQ(::mkdir((path + "directory" + number).c_str(), 0700), 0);
    EXPECT_TRUE(knows("directory" + number));
    ASSERT_EQ(::mkfifo((path + "pipe" + number).c_str(), 0600), 0);
    EXPECT_TRUE(knows("pipe" + number));
  }
}

TEST_F(WatcherTest, ChangesThatWereCaughtUpOnAreReportedAllTheSame) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "f" + std::to_string(i);
    directory_.write(name, {});
    watcher_.catch_up();
    if (i % 3 == 0) wait_for_report_of(name);
  }
  for (int i = 0; i < 300; ++i)
    wait_for_report_of("f" + std::to_string(i));
}

}  // namespace
}  // namespace cframefs::fs
