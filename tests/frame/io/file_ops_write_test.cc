// The system's file operations that change files: each does what its system call does, beneath a directory.
#include <cerrno>
#include <climits>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "frame/io/file_ops.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::Result;
using frame::Descriptor;
using frame::FileOffset;
using frame::FileOps;
using Bytes = std::vector<std::uint8_t>;

class FileOpsWriteTest : public ::testing::TestWithParam<FileOps* (*)()> {
 protected:
  FileOpsWriteTest() : files_(*GetParam()()) {
    std::filesystem::create_directories(temp_.path() / "inside" / "deep");
    temp_.write("secret", Bytes{'s'});
    temp_.write("inside/file", Bytes{'a', 'b', 'c', 'd'});
    std::filesystem::create_symlink("..", temp_.path() / "inside" / "up");
    std::filesystem::create_symlink("../secret", temp_.path() / "inside" / "escape");
    std::filesystem::create_symlink("file", temp_.path() / "inside" / "alias");
    const auto fd = files_.open_named(inside().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = Descriptor(files_, fd.value_or(frame::OpenFile{}));
  }

  std::filesystem::path inside() const { return temp_.path() / "inside"; }
  frame::OpenFile dir() const { return dir_.handle(); }
  Bytes content(const std::string& name) const { return test::file_bytes(inside() / name); }

  Descriptor open(const std::string& name) {
    const auto fd = files_.open_at(dir(), name, O_RDWR);
    EXPECT_TRUE(fd);
    return {files_, fd.value_or(frame::OpenFile{})};
  }

  /// Opens an entry as callers that change attributes do.
  Descriptor entry(const std::string& name) {
    const auto fd = files_.open_at(dir(), name, O_PATH | O_NOFOLLOW);
    EXPECT_TRUE(fd) << name;
    return {files_, fd.value_or(frame::OpenFile{})};
  }

  static int error_of(const Result<void>& result) { return result ? 0 : result.error().sys; }
  int error_of(const Result<frame::OpenFile>& result) {
    if (!result) return result.error().sys;
    files_.close(*result);
    return 0;
  }

  test::TempDir temp_;
  FileOps& files_;
  Descriptor dir_;
};

TEST_P(FileOpsWriteTest, BytesAreWrittenAtTheirOffset) {
  const Descriptor file = open("file");
  EXPECT_EQ(error_of(files_.pwrite(file.handle(), Bytes{'X', 'Y'}, FileOffset{1})), 0);
  EXPECT_EQ(content("file"), (Bytes{'a', 'X', 'Y', 'd'}));
  EXPECT_EQ(error_of(files_.pwrite(file.handle(), Bytes{'Z'}, FileOffset{6})), 0);
  EXPECT_EQ(content("file"), (Bytes{'a', 'X', 'Y', 'd', 0, 0, 'Z'}));
  EXPECT_EQ(error_of(files_.pwrite(file.handle(), Bytes{'Z'}, FileOffset{UINT64_MAX})), EFBIG);
  const auto read_only = files_.open_at(dir(), "file", O_RDONLY);
  ASSERT_TRUE(read_only);
  const Descriptor other(files_, *read_only);
  EXPECT_EQ(error_of(files_.pwrite(other.handle(), Bytes{'Z'}, FileOffset{0})), EBADF);
}

TEST_P(FileOpsWriteTest, AFileIsTruncatedAndExtended) {
  const Descriptor file = open("file");
  EXPECT_EQ(error_of(files_.truncate(file.handle(), 2)), 0);
  EXPECT_EQ(content("file"), (Bytes{'a', 'b'}));
  EXPECT_EQ(error_of(files_.truncate(file.handle(), 3)), 0);
  EXPECT_EQ(content("file"), (Bytes{'a', 'b', 0}));
  EXPECT_EQ(error_of(files_.truncate(file.handle(), UINT64_MAX)), EFBIG);
}

TEST_P(FileOpsWriteTest, AHoleIsPunched) {
  const Descriptor file = open("file");
  ASSERT_EQ(error_of(files_.pwrite(file.handle(), Bytes(8192, 1), FileOffset{0})), 0);
  const int punch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;
  const int error = error_of(files_.allocate(file.handle(), punch, FileOffset{4096}, 4096));
  if (error == EOPNOTSUPP) GTEST_SKIP() << "no holes on this filesystem";
  ASSERT_EQ(error, 0);
  const Bytes after = content("file");
  ASSERT_EQ(after.size(), 8192U);
  EXPECT_EQ(after[4095], 1);
  EXPECT_EQ(after[4096], 0);
  EXPECT_EQ(error_of(files_.allocate(file.handle(), 0, FileOffset{UINT64_MAX}, 1)), EFBIG);
}

TEST_P(FileOpsWriteTest, FilesAndDirectoriesAreSynced) {
  const Descriptor file = open("file");
  EXPECT_EQ(error_of(files_.sync(file.handle(), true)), 0);
  EXPECT_EQ(error_of(files_.sync(file.handle(), false)), 0);
  EXPECT_EQ(error_of(files_.sync(dir(), false)), 0);
  EXPECT_EQ(error_of(files_.sync(frame::OpenFile{}, false)), EBADF);
}

TEST_P(FileOpsWriteTest, AFileIsCreatedOnlyBeneathTheDirectory) {
  EXPECT_EQ(error_of(files_.create_at(dir(), "new", O_RDWR | O_EXCL, 0640)), 0);
  const auto made = files_.status_at(dir(), "new");
  ASSERT_TRUE(made);
  EXPECT_EQ(made->st_mode & 0777 & ~0640U, 0U);
  EXPECT_EQ(error_of(files_.create_at(dir(), "new", O_RDWR | O_EXCL, 0640)), EEXIST);
  EXPECT_EQ(error_of(files_.create_at(dir(), "new", O_RDWR, 0640)), 0) << "opens the existing file";
  EXPECT_EQ(error_of(files_.create_at(dir(), "deep/new", O_RDWR, 0600)), 0);
  EXPECT_TRUE(std::filesystem::exists(inside() / "deep" / "new"));
  for (const char* path : {"../outside", "up/outside", "escape", "alias", "..", "/tmp/outside", "gone/new"}) {
    EXPECT_NE(error_of(files_.create_at(dir(), path, O_RDWR, 0600)), 0) << path;
  }
  EXPECT_EQ(error_of(files_.create_at(dir(), std::string("a\0b", 3), O_RDWR, 0600)), EINVAL);
  EXPECT_FALSE(std::filesystem::exists(temp_.path() / "outside"));
  EXPECT_EQ(test::file_bytes(temp_.path() / "secret"), Bytes{'s'});
}

TEST_P(FileOpsWriteTest, RenamingReplacesExchangesOrRefuses) {
  temp_.write("inside/other", Bytes{'o'});
  EXPECT_EQ(error_of(files_.rename_at(dir(), "file", dir(), "other", RENAME_NOREPLACE)), EEXIST);
  const int exchanged = error_of(files_.rename_at(dir(), "file", dir(), "other", RENAME_EXCHANGE));
  if (exchanged != EINVAL) {  // not every filesystem supports it
    EXPECT_EQ(exchanged, 0);
    EXPECT_EQ(content("file"), Bytes{'o'});
  }
  EXPECT_EQ(error_of(files_.rename_at(dir(), "file", dir(), "deep/moved", 0)), 0);
  EXPECT_FALSE(std::filesystem::exists(inside() / "file"));
  EXPECT_EQ(error_of(files_.rename_at(dir(), "deep/moved", dir(), "other", 0)), 0);
  EXPECT_FALSE(std::filesystem::exists(inside() / "deep" / "moved"));
  EXPECT_NE(error_of(files_.rename_at(dir(), "other", dir(), "../secret", 0)), 0);
  EXPECT_NE(error_of(files_.rename_at(dir(), "up/secret", dir(), "mine", 0)), 0);
  EXPECT_NE(error_of(files_.rename_at(dir(), "..", dir(), "mine", 0)), 0);
  EXPECT_EQ(error_of(files_.rename_at(dir(), "gone", dir(), "mine", 0)), ENOENT);
  EXPECT_EQ(test::file_bytes(temp_.path() / "secret"), Bytes{'s'});
}

TEST_P(FileOpsWriteTest, FilesAndDirectoriesAreRemoved) {
  EXPECT_EQ(error_of(files_.remove_at(dir(), "deep", false)), EISDIR);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "file", true)), ENOTDIR);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "file", false)), 0);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "file", false)), ENOENT);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "escape", false)), 0) << "the link, not its target";
  temp_.write("inside/deep/full", Bytes{1});
  EXPECT_EQ(error_of(files_.remove_at(dir(), "deep", true)), ENOTEMPTY);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "deep/full", false)), 0);
  EXPECT_EQ(error_of(files_.remove_at(dir(), "deep", true)), 0);
  EXPECT_NE(error_of(files_.remove_at(dir(), "up/secret", false)), 0);
  EXPECT_NE(error_of(files_.remove_at(dir(), "../secret", false)), 0);
  EXPECT_TRUE(std::filesystem::exists(temp_.path() / "secret"));
}

TEST_P(FileOpsWriteTest, DirectoriesPipesAndLinksAreMade) {
  EXPECT_EQ(error_of(files_.make_directory_at(dir(), "directory", 0755)), 0);
  EXPECT_EQ(error_of(files_.make_directory_at(dir(), "directory", 0755)), EEXIST);
  EXPECT_EQ(error_of(files_.make_node_at(dir(), "directory/pipe", S_IFIFO | 0600, 0)), 0);
  EXPECT_TRUE(std::filesystem::is_fifo(inside() / "directory" / "pipe"));
  EXPECT_EQ(error_of(files_.link_at(entry("file").handle(), dir(), "directory/twin")), 0);
  EXPECT_EQ(std::filesystem::hard_link_count(inside() / "file"), 2U);
  EXPECT_EQ(error_of(files_.make_symlink_at("any where", dir(), "directory/link")), 0);
  EXPECT_EQ(*files_.read_link(entry("directory/link").handle()), "any where");
  EXPECT_EQ(error_of(files_.link_at(entry("directory/link").handle(), dir(), "directory/second")), 0);
  EXPECT_EQ(*files_.read_link(entry("directory/second").handle()), "any where") << "a name of the link itself";
  EXPECT_EQ(error_of(files_.make_symlink_at(std::string("a\0b", 3), dir(), "bad")), EINVAL);
  EXPECT_NE(error_of(files_.make_directory_at(dir(), "../beside", 0755)), 0);
  EXPECT_NE(error_of(files_.make_symlink_at("x", dir(), "up/beside")), 0);
  EXPECT_NE(error_of(files_.link_at(entry("file").handle(), dir(), "up/beside")), 0);
  EXPECT_FALSE(std::filesystem::exists(temp_.path() / "beside"));
}

TEST_P(FileOpsWriteTest, AFileWithoutANameGetsOneOnce) {
  const auto made = files_.create_at(dir(), ".", O_RDWR | O_TMPFILE, 0640);
  if (!made && made.error().sys == EOPNOTSUPP) GTEST_SKIP() << "no files without names on this filesystem";
  ASSERT_TRUE(made);
  const Descriptor file(files_, *made);
  EXPECT_EQ(error_of(files_.link_at(file.handle(), dir(), "file")), EEXIST);
  EXPECT_EQ(error_of(files_.link_at(file.handle(), dir(), "named")), 0);
  EXPECT_EQ(files_.status_at(dir(), "named")->st_ino, files_.status(file.handle())->st_ino);
  EXPECT_EQ(std::filesystem::hard_link_count(inside() / "named"), 1U);
  EXPECT_NE(error_of(files_.create_at(dir(), "up", O_RDWR | O_TMPFILE, 0640)), 0);
}

TEST_P(FileOpsWriteTest, ModeOwnerAndTimesAreSetOnTheEntryItself) {
  EXPECT_EQ(error_of(files_.change_mode(entry("file").handle(), 0604)), 0);
  EXPECT_EQ(files_.status_at(dir(), "file")->st_mode & 07777, 0604U);
  EXPECT_EQ(error_of(files_.change_mode(entry("alias").handle(), 0600)), EOPNOTSUPP);
  EXPECT_EQ(error_of(files_.change_mode(entry("escape").handle(), 0600)), EOPNOTSUPP);
  EXPECT_EQ(files_.status_at(dir(), "file")->st_mode & 07777, 0604U);
  EXPECT_EQ(error_of(files_.change_owner(entry("file").handle(), ::geteuid(), static_cast<gid_t>(-1))), 0);
  EXPECT_EQ(error_of(files_.change_owner(frame::OpenFile{}, ::geteuid(), static_cast<gid_t>(-1))), EBADF);

  const struct timespec modified = {1'000'000, 123'456'789};
  EXPECT_EQ(error_of(files_.set_times(entry("file").handle(), {timespec{0, UTIME_OMIT}, modified})), 0);
  const auto status = files_.status_at(dir(), "file");
  EXPECT_EQ(status->st_mtim.tv_sec, modified.tv_sec);
  EXPECT_EQ(status->st_mtim.tv_nsec, modified.tv_nsec);
  EXPECT_NE(status->st_atim.tv_sec, modified.tv_sec);
  const auto target = files_.status_at(dir(), "file")->st_mtim;
  EXPECT_EQ(error_of(files_.set_times(entry("alias").handle(), {timespec{5, 0}, timespec{5, 0}})), 0);
  EXPECT_EQ(files_.status_at(dir(), "file")->st_mtim.tv_sec, target.tv_sec);
  EXPECT_EQ(files_.status_at(dir(), "alias")->st_mtim.tv_sec, 5);
}

TEST_P(FileOpsWriteTest, AttributesAreSetAndRemoved) {
  const Descriptor file = open("file");
  const auto set = files_.set_attribute(file.handle(), "user.colour", std::string("bl\0ue", 5), 0);
  if (error_of(set) == EOPNOTSUPP) GTEST_SKIP() << "no extended attributes on this filesystem";
  ASSERT_TRUE(set);
  EXPECT_EQ(*files_.get_attribute(file.handle(), "user.colour"), std::string("bl\0ue", 5));
  EXPECT_EQ(error_of(files_.set_attribute(file.handle(), "user.colour", "x", XATTR_CREATE)), EEXIST);
  EXPECT_EQ(error_of(files_.set_attribute(file.handle(), "user.shape", "x", XATTR_REPLACE)), ENODATA);
  EXPECT_EQ(error_of(files_.remove_attribute(file.handle(), "user.colour")), 0);
  EXPECT_EQ(error_of(files_.remove_attribute(file.handle(), "user.colour")), ENODATA);
}

TEST_P(FileOpsWriteTest, AHeldLockIsReportedWithoutWaiting) {
  const Descriptor mine = open("file");
  const Descriptor theirs = open("file");
  EXPECT_EQ(*files_.try_lock(mine.handle(), LOCK_EX), true);
  EXPECT_EQ(*files_.try_lock(theirs.handle(), LOCK_EX), false);
  EXPECT_EQ(*files_.try_lock(theirs.handle(), LOCK_SH), false);
  EXPECT_EQ(*files_.try_lock(mine.handle(), LOCK_UN), true);
  EXPECT_EQ(*files_.try_lock(theirs.handle(), LOCK_SH), true);
  EXPECT_EQ(*files_.try_lock(mine.handle(), LOCK_SH), true);
  EXPECT_EQ(files_.try_lock(frame::OpenFile{}, LOCK_SH).error().sys, EBADF);
}

INSTANTIATE_TEST_SUITE_P(NewAndOldKernels, FileOpsWriteTest,
                         ::testing::Values([] { return &frame::system_files(); },
                                           [] { return &frame::portable_files(); }));

}  // namespace
}  // namespace cframefs
