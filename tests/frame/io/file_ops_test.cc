// The system's file operations: no call reaches a file outside its directory, with and without openat2(2).
#include "frame/io/file_ops.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <thread>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using frame::Descriptor;
using frame::FileOffset;
using frame::FileOps;

class FileOpsTest : public ::testing::TestWithParam<FileOps* (*)()> {
 protected:
  FileOpsTest() : files_(*GetParam()()) {
    std::filesystem::create_directories(temp_.path() / "inside" / "deep");
    write("inside/file", "plain");
    write("inside/deep/file", "deeper");
    write("secret", "secret");
    const auto link = [this](const char* to, const char* name) {
      std::filesystem::create_symlink(to, temp_.path() / "inside" / name);
    };
    link("../secret", "escape");
    link("file", "alias");
    link("deep", "directory-alias");
    link("..", "up");
    link("/etc", "absolute");
    const auto fd = files_.open_named((temp_.path() / "inside").string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = Descriptor(files_, fd.value_or(frame::OpenFile{}));
  }

  void write(const std::string& name, const std::string& text) {
    std::vector<std::uint8_t> bytes(text.begin(), text.end());
    temp_.write(name, bytes);
  }

  Descriptor entry(const std::string& name) {
    const auto fd = files_.open_at(dir_.handle(), name, O_PATH | O_NOFOLLOW);
    EXPECT_TRUE(fd) << name;
    return {files_, fd.value_or(frame::OpenFile{})};
  }

  int error_of(const std::string& path, int flags = O_RDONLY) {
    const auto fd = files_.open_at(dir_.handle(), path, flags);
    if (!fd) return fd.error().sys;
    files_.close(*fd);
    return 0;
  }

  test::TempDir temp_;
  FileOps& files_;
  Descriptor dir_;
};

TEST_P(FileOpsTest, PathsBeneathTheDirectoryOpen) {
  for (const char* path : {"file", "./file", "deep/file", "deep//file", "deep/./file", ".", "deep", "deep/"}) {
    EXPECT_EQ(error_of(path), 0) << path;
  }
}

TEST_P(FileOpsTest, NothingOutsideTheDirectoryIsReached) {
  for (const char* path : {"..", "../secret", "deep/../../secret", "escape", "up/secret", "absolute/passwd",
                           "/etc/passwd", "/", "directory-alias/../../secret"}) {
    EXPECT_NE(error_of(path), 0) << path;
  }
}

TEST_P(FileOpsTest, LinksAreNotFollowedEvenIfTheyStayInside) {
  EXPECT_NE(error_of("alias"), 0);
  EXPECT_NE(error_of("directory-alias/file"), 0);
}

TEST_P(FileOpsTest, MissingOrInvalidPathsGiveTheirErrno) {
  EXPECT_EQ(error_of("absent"), ENOENT);
  EXPECT_EQ(error_of("deep/absent"), ENOENT);
  EXPECT_EQ(error_of(""), ENOENT);
  EXPECT_EQ(error_of("file/below"), ENOTDIR);
  EXPECT_EQ(error_of(std::string("file\0.txt", 9)), EINVAL);
}

TEST_P(FileOpsTest, ALinkHasItsOwnStatusAndTarget) {
  for (const char* path : {"alias", "./alias"}) {
    const auto status = files_.status_at(dir_.handle(), path);
    ASSERT_TRUE(status) << path;
    EXPECT_TRUE(S_ISLNK(status->st_mode)) << path;
    EXPECT_EQ(files_.read_link(entry(path).handle()), "file") << path;
  }
  EXPECT_FALSE(files_.read_link(entry("file").handle()));
  EXPECT_FALSE(files_.status_at(dir_.handle(), "../secret"));
  EXPECT_FALSE(files_.status_at(dir_.handle(), ".."));
  EXPECT_FALSE(files_.open_at(dir_.handle(), "up/inside/alias", O_PATH | O_NOFOLLOW));
}

TEST_P(FileOpsTest, ALongLinkIsReadWhole) {
  const std::string target(3000, 'x');
  std::filesystem::create_symlink(target, temp_.path() / "inside" / "long");
  EXPECT_EQ(files_.read_link(entry("long").handle()), target);
}

TEST_P(FileOpsTest, DescriptorsAreNotInherited) {
  const auto fd = files_.open_at(dir_.handle(), "file", O_RDONLY);
  ASSERT_TRUE(fd);
  EXPECT_NE(::fcntl(fd->value, F_GETFD) & FD_CLOEXEC, 0);
  files_.close(*fd);
}

TEST_P(FileOpsTest, ReadsEndWithTheFile) {
  const auto fd = files_.open_at(dir_.handle(), "file", O_RDONLY);
  ASSERT_TRUE(fd);
  const Descriptor file(files_, *fd);
  std::vector<std::uint8_t> buffer(10);
  EXPECT_EQ(files_.pread(file.handle(), buffer, FileOffset{0}), 5U);
  EXPECT_EQ(files_.pread(file.handle(), buffer, FileOffset{3}), 2U);
  EXPECT_EQ(files_.pread(file.handle(), buffer, FileOffset{5}), 0U);
  EXPECT_EQ(files_.pread(file.handle(), buffer, FileOffset{UINT64_MAX - 3}).error().sys, EINVAL);
}

TEST_P(FileOpsTest, ADirectoryCanBeListedRepeatedlyAndConcurrently) {
  const auto names = [this] {
    std::vector<std::string> list;
    const auto entries = files_.list(dir_.handle());
    if (entries) {
      for (const frame::DirectoryEntry& entry : *entries)
        list.push_back(entry.name);
    }
    std::sort(list.begin(), list.end());
    return list;
  };
  const std::vector<std::string> expected = {"absolute", "alias", "deep", "directory-alias", "escape", "file", "up"};
  EXPECT_EQ(names(), expected);
  EXPECT_EQ(names(), expected) << "a second time";
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (int i = 0; i < 100; ++i)
        wrong += names() != expected;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST_P(FileOpsTest, ListedEntriesHaveTypeAndInode) {
  const auto entries = files_.list(dir_.handle());
  ASSERT_TRUE(entries);
  for (const frame::DirectoryEntry& entry : *entries) {
    const auto status = files_.status_at(dir_.handle(), entry.name);
    ASSERT_TRUE(status);
    EXPECT_EQ(entry.inode, status->st_ino) << entry.name;
    EXPECT_EQ(entry.type, IFTODT(status->st_mode)) << entry.name;
  }
}

TEST_P(FileOpsTest, AttributesOfAFileOpenedForReading) {
  const auto fd = files_.open_at(dir_.handle(), "file", O_RDONLY);
  ASSERT_TRUE(fd);
  const Descriptor file(files_, *fd);
  const int set = ::fsetxattr(file.handle().value, "user.empty", "", 0, 0);
  if (set != 0 && errno == EOPNOTSUPP) GTEST_SKIP() << "no extended attributes on this filesystem";
  ASSERT_EQ(set, 0) << errno;
  ASSERT_EQ(::fsetxattr(file.handle().value, "user.colour", "green", 5, 0), 0);
  auto names = files_.list_attributes(file.handle());
  ASSERT_TRUE(names);
  for (const char* name : {"user.empty", "user.colour"}) {
    EXPECT_EQ(std::count(names->begin(), names->end(), name), 1) << name;
  }
  EXPECT_EQ(files_.get_attribute(file.handle(), "user.colour"), "green");
  EXPECT_EQ(files_.get_attribute(file.handle(), "user.empty"), "");
  EXPECT_EQ(files_.get_attribute(file.handle(), "user.absent").error().sys, ENODATA);
}

INSTANTIATE_TEST_SUITE_P(Kernels, FileOpsTest,
                         ::testing::Values([]() -> FileOps* { return &frame::system_files(); },
                                           []() -> FileOps* { return &frame::portable_files(); }),
                         [](const auto& instance) { return instance.index == 0 ? "current" : "before_5_6"; });

TEST(Descriptor, IsClosedOnce) {
  test::TempDir temp;
  const auto fd = frame::system_files().open_named(temp.path().string(), O_RDONLY);
  ASSERT_TRUE(fd);
  {
    Descriptor one(frame::system_files(), *fd);
    Descriptor two(std::move(one));
    EXPECT_FALSE(one.is_open());  // NOLINT(bugprone-use-after-move): that is the question
    EXPECT_EQ(two.handle(), *fd);
    one = std::move(two);
    EXPECT_TRUE(one.is_open());
  }
  EXPECT_EQ(::fcntl(fd->value, F_GETFD), -1);
}

}  // namespace
}  // namespace cframefs
