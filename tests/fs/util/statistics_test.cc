// What the counters of a mount count.
#include "fs/util/statistics.h"

#include <fstream>
#include <string>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

class StatisticsTest : public WrittenFilesystem {
 protected:
  void make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    ASSERT_TRUE(handle);
    EXPECT_TRUE(write(*handle, 0, text));
    EXPECT_TRUE(close(std::move(handle)));
  }
  std::uint64_t changes() const { return filesystem_->statistics().backing_changes; }
};

TEST_F(StatisticsTest, ChangesByTheMountAreNoBackingChanges) {
  for (int i = 0; i < 30; ++i) {
    const std::string name = "f" + std::to_string(i);
    make(name, "text of " + name);
    EXPECT_TRUE(filesystem_->attributes().of(kRootNode, nullptr));
    EXPECT_EQ(content(name), "text of " + name);
    // A directory, which is passed through.
    EXPECT_TRUE(filesystem_->names().make_directory(kRootNode, "d" + name, 0755, {}));
    EXPECT_TRUE(filesystem_->attributes().of(kRootNode, nullptr));
    auto handle = open(name);
    EXPECT_TRUE(write(*handle, 3, "changed"));
    EXPECT_EQ(read(*handle).substr(3, 7), "changed");
    EXPECT_TRUE(filesystem_->files().sync(*handle, false));
    EXPECT_EQ(read(*handle).substr(3, 7), "changed");
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content(name).substr(3, 7), "changed");
  }
  EXPECT_EQ(changes(), 0U);
}

TEST_F(StatisticsTest, AFrameThatAnotherProgramReplacesIsOneChange) {
  make("f", "the first content");
  make("g", "the content of another one");
  let_settle("f");
  auto handle = open("f", O_RDONLY);
  EXPECT_EQ(read(*handle), "the first content");
  EXPECT_EQ(changes(), 0U);
  std::filesystem::copy_file(directory_.path() / "g.b2frame", directory_.path() / "f.b2frame",
                             std::filesystem::copy_options::overwrite_existing);
  let_settle("f");
  EXPECT_EQ(size_of("f"), 26U);
  EXPECT_EQ(content("f"), "the content of another one");
  EXPECT_GE(changes(), 1U);
  EXPECT_LE(changes(), 2U);  // seen by stat, and by the handle that had the file open
  filesystem_->files().release(std::move(handle));
}

TEST_F(StatisticsTest, FailedCommitsAndLostBytesAreCounted) {
  make("f", "stored");
  const Statistics& statistics = filesystem_->statistics();
  EXPECT_EQ(statistics.writing.failed_commits, 0U);
  auto handle = open("f");
  ASSERT_TRUE(write(*handle, 0, std::string(1000, 'x')));
  disk_.write_error = ENOSPC;
  EXPECT_EQ(errno_of(close(std::move(handle))), ENOSPC);
  const std::uint64_t failed = statistics.writing.failed_commits;
  EXPECT_GE(failed, 1U);
  EXPECT_EQ(statistics.writing.bytes_lost, 0U);  // the commit will be retried
  filesystem_->stop();
  EXPECT_GT(statistics.writing.failed_commits, failed);
  EXPECT_EQ(statistics.writing.bytes_lost, 1000U);
  disk_.write_error = 0;
}

}  // namespace
}  // namespace cframefs::fs
