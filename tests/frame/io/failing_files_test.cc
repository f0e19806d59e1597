// FailingFiles, the test double that fails file operations, once or permanently, and blocks them at a gate.
#include "tests/support/failing_files.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using test::FailingFiles;
using Kind = test::FileCall::Kind;

class FailingFilesTest : public ::testing::Test {
 protected:
  FailingFilesTest() {
    temp_.write("file", std::vector<std::uint8_t>(3000, 1));
    file_ = frame::Descriptor(files_, *files_.open_named((temp_.path() / "file").string(), O_RDWR));
    files_.count(FailingFiles::every);
  }
  codec::Result<void> write(std::size_t size = 1) {
    return files_.pwrite(file_.handle(), std::vector<std::uint8_t>(size, 2), frame::FileOffset{100});
  }
  std::size_t count_of(std::uint8_t value) const {
    const auto bytes = test::file_bytes(temp_.path() / "file");
    return static_cast<std::size_t>(std::count(bytes.begin(), bytes.end(), value));
  }

  test::TempDir temp_;
  FailingFiles files_;
  frame::Descriptor file_;
};

TEST_F(FailingFilesTest, OneCallFailsWithoutEffectAndTheNextGoesThrough) {
  files_.fail(2, ENOSPC);
  EXPECT_TRUE(files_.status(file_.handle()));
  EXPECT_FALSE(files_.failed());
  EXPECT_EQ(write().error().sys, ENOSPC);
  EXPECT_EQ(count_of(2), 0U);
  ASSERT_TRUE(files_.failed());
  EXPECT_EQ(files_.failed()->kind, Kind::write);
  EXPECT_TRUE(write());
  EXPECT_EQ(files_.calls(), 3);
}

TEST_F(FailingFilesTest, CallsFailPermanentlyUntilReset) {
  files_.fail(1, EIO, FailingFiles::for_good);
  EXPECT_EQ(files_.status(file_.handle()).error().sys, EIO);
  EXPECT_EQ(files_.try_lock(file_.handle(), 0).error().sys, EIO);
  EXPECT_EQ(files_.failed()->kind, Kind::status);
  files_.stop();
  EXPECT_TRUE(write());
}

TEST_F(FailingFilesTest, OtherCallsNeitherCountNorFail) {
  files_.count(FailingFiles::changes);
  files_.fail(1, EIO, FailingFiles::for_good);
  EXPECT_TRUE(files_.status(file_.handle()));
  EXPECT_EQ(files_.calls(), 0);
  EXPECT_FALSE(write());
  EXPECT_EQ(files_.calls(), 1);
}

TEST_F(FailingFilesTest, AWriteIsTornAtASectorBoundary) {
  files_.fail(1, ENOSPC, FailingFiles::cut_short);
  EXPECT_FALSE(write(2000));
  EXPECT_EQ(count_of(2), 1024U - 100U);
}

TEST_F(FailingFilesTest, ACallBlocksUntilTheGateOpensAndOthersContinue) {
  files_.hold(1);
  std::atomic<bool> done = false;
  std::thread writer([&] {
    EXPECT_TRUE(write());
    done = true;
  });
  ASSERT_TRUE(files_.wait_until_held());
  EXPECT_TRUE(files_.status(file_.handle()));
  EXPECT_EQ(count_of(2), 0U);
  EXPECT_FALSE(done);
  files_.release();
  writer.join();
  EXPECT_EQ(count_of(2), 1U);
}

TEST_F(FailingFilesTest, NoThreadBlocksWithoutACall) {
  files_.hold(5);
  EXPECT_FALSE(files_.wait_until_held(std::chrono::milliseconds(1)));
}

}  // namespace
}  // namespace cframefs
