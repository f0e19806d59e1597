// What every implementation of the file operations does that can change files.
#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "tests/frame/io/file_ops_contract.h"

namespace cframefs::test {
namespace {

using frame::ByteLock;
using frame::Descriptor;
using frame::FileOffset;
using frame::FileVersion;
using frame::OpenFile;

class FileOpsChanging : public FileOpsContract {
 protected:
  Descriptor create(const std::string& name, int flags = O_RDWR | O_EXCL) {
    const auto file = files_.create_at(dir(), name, flags, 0600);
    EXPECT_TRUE(file) << name << ": " << codec::describe(file.error());
    return {files_, file.value_or(OpenFile{})};
  }
};

TEST_P(FileOpsChanging, AFileIsCreatedOnce) {
  const Descriptor file = create("new");
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther, "new"}));
  EXPECT_EQ(content("new"), Bytes());
  EXPECT_EQ(error_of(files_.create_at(dir(), "new", O_RDWR | O_EXCL, 0600)), EEXIST);
  EXPECT_EQ(error_of(files_.create_at(dir(), kFile, O_RDWR | O_EXCL, 0600)), EEXIST);
  const Descriptor existing = create(kFile, O_RDWR);
  EXPECT_EQ(content(existing.handle()), content_of_file()) << "opens the existing file";
}

TEST_P(FileOpsChanging, WritesOverwriteAndExtend) {
  const Descriptor file = create("new");
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{'a', 'b', 'c'}, FileOffset{0}));
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{'X'}, FileOffset{1}));
  EXPECT_EQ(content("new"), (Bytes{'a', 'X', 'c'}));
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{'Z'}, FileOffset{5}));
  EXPECT_EQ(content("new"), (Bytes{'a', 'X', 'c', 0, 0, 'Z'}));
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{}, FileOffset{2}));
  EXPECT_EQ(content("new").size(), 6U);
  files_.start_writeback(file.handle(), FileOffset{0}, 6);
  EXPECT_TRUE(files_.sync(file.handle(), true));
  EXPECT_TRUE(files_.sync(dir(), false));
  EXPECT_EQ(content("new"), (Bytes{'a', 'X', 'c', 0, 0, 'Z'}));
}

TEST_P(FileOpsChanging, AFileIsCutAndExtended) {
  const Descriptor file = create("new");
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{'a', 'b', 'c'}, FileOffset{0}));
  ASSERT_TRUE(files_.truncate(file.handle(), 1));
  EXPECT_EQ(content("new"), (Bytes{'a'}));
  ASSERT_TRUE(files_.truncate(file.handle(), 3));
  EXPECT_EQ(content("new"), (Bytes{'a', 0, 0}));
}

TEST_P(FileOpsChanging, AFileOpenForReadingIsNotWritten) {
  const Descriptor file = open(kFile, O_RDONLY);
  EXPECT_EQ(error_of(files_.pwrite(file.handle(), Bytes{'x'}, FileOffset{0})), EBADF);
  EXPECT_NE(error_of(files_.truncate(file.handle(), 0)), 0);
  EXPECT_EQ(content(kFile), content_of_file());
}

TEST_P(FileOpsChanging, RenamingReplacesUnlessItMayNot) {
  const Descriptor replaced = open(kOther);
  EXPECT_EQ(error_of(files_.rename_at(dir(), kFile, dir(), kOther, RENAME_NOREPLACE)), EEXIST);
  EXPECT_EQ(content(kOther), content_of_other());
  EXPECT_EQ(content(kFile), content_of_file());
  ASSERT_TRUE(files_.rename_at(dir(), kFile, dir(), "new", RENAME_NOREPLACE));
  EXPECT_EQ(names(), (std::multiset<std::string>{kOther, "new"}));
  ASSERT_TRUE(files_.rename_at(dir(), "new", dir(), kOther, 0));
  EXPECT_EQ(names(), (std::multiset<std::string>{kOther}));
  EXPECT_EQ(content(kOther), content_of_file());
  EXPECT_EQ(content(replaced.handle()), content_of_other()) << "an open file outlives its name";
  EXPECT_EQ(error_of(files_.rename_at(dir(), "absent", dir(), "new", 0)), ENOENT);
  EXPECT_EQ(names(), (std::multiset<std::string>{kOther}));
}

TEST_P(FileOpsChanging, RenamingExchanges) {
  ASSERT_TRUE(files_.rename_at(dir(), kFile, dir(), kOther, RENAME_EXCHANGE));
  EXPECT_EQ(content(kFile), content_of_other());
  EXPECT_EQ(content(kOther), content_of_file());
  EXPECT_EQ(error_of(files_.rename_at(dir(), kFile, dir(), "absent", RENAME_EXCHANGE)), ENOENT);
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther}));
}

TEST_P(FileOpsChanging, ARemovedFileIsGoneByName) {
  const Descriptor file = open(kFile);
  ASSERT_TRUE(files_.remove_at(dir(), kFile, false));
  EXPECT_EQ(opening(kFile), ENOENT);
  EXPECT_EQ(names(), (std::multiset<std::string>{kOther}));
  EXPECT_EQ(content(file.handle()), content_of_file());
  EXPECT_EQ(error_of(files_.remove_at(dir(), kFile, false)), ENOENT);
}

TEST_P(FileOpsChanging, NothingChangesOutsideTheDirectory) {
  for (const std::string& path : kOutside) {
    EXPECT_NE(error_of(files_.create_at(dir(), path, O_RDWR, 0600)), 0) << path;
    EXPECT_NE(error_of(files_.rename_at(dir(), kFile, dir(), path, 0)), 0) << path;
    EXPECT_NE(error_of(files_.rename_at(dir(), path, dir(), "new", 0)), 0) << path;
    EXPECT_NE(error_of(files_.remove_at(dir(), path, false)), 0) << path;
  }
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther}));
}

TEST_P(FileOpsChanging, EachChangeMakesAnotherVersion) {
  const Descriptor file = open(kFile, O_RDWR);
  FileVersion last = settled(file.handle());
  const auto expect_other = [&](const std::string& what) {
    const auto now = files_.version(file.handle());
    ASSERT_TRUE(now);
    EXPECT_FALSE(last == *now) << what;
    EXPECT_FALSE(last.still_matches(*now)) << what;
    last = settled(file.handle());
  };
  ASSERT_TRUE(files_.pwrite(file.handle(), Bytes{1}, FileOffset{0}));
  expect_other("a write");
  ASSERT_TRUE(files_.truncate(file.handle(), 50));
  expect_other("a cut");
  ASSERT_TRUE(files_.rename_at(dir(), kOther, dir(), kFile, 0));
  const auto replacing = files_.version(open(kFile).handle());
  ASSERT_TRUE(replacing);
  EXPECT_FALSE(last == *replacing);
}

INSTANTIATE_TEST_SUITE_P(Changing, FileOpsChanging, testing::ValuesIn(changing()), name_of);

// ---- what only a disk has ----------------------------------------------------------------------------------------

class FileOpsOnDisk : public FileOpsChanging {};

TEST_P(FileOpsOnDisk, NoLinkIsFollowed) {
  ASSERT_TRUE(files_.make_symlink_at("../secret", dir(), "escape"));
  ASSERT_TRUE(files_.make_symlink_at(kFile, dir(), "alias"));
  ASSERT_TRUE(files_.make_symlink_at("..", dir(), "up"));
  for (const char* path : {"escape", "alias", "up/secret", "up/inside/file.b2f"})
    EXPECT_NE(opening(path), 0) << path;
  const auto status = files_.status_at(dir(), "alias");
  ASSERT_TRUE(status);
  EXPECT_TRUE(S_ISLNK(status->st_mode));
  EXPECT_EQ(files_.read_link(open("alias", O_PATH | O_NOFOLLOW).handle()), kFile);
  EXPECT_NE(error_of(files_.create_at(dir(), "up/new", O_RDWR, 0600)), 0);
  EXPECT_NE(error_of(files_.remove_at(dir(), "up/secret", false)), 0);
  EXPECT_EQ(file_bytes(tree_->temp.path() / "secret"), Bytes{'s'});
}

TEST_P(FileOpsOnDisk, DirectoriesNest) {
  ASSERT_TRUE(files_.make_directory_at(dir(), "deep", 0700));
  ASSERT_TRUE(files_.rename_at(dir(), kFile, dir(), "deep/" + kFile, 0));
  EXPECT_EQ(content("deep/" + kFile), content_of_file());
  EXPECT_EQ(error_of(files_.remove_at(dir(), "deep", true)), ENOTEMPTY);
  ASSERT_TRUE(files_.remove_at(dir(), "deep/" + kFile, false));
  ASSERT_TRUE(files_.remove_at(dir(), "deep", true));
  EXPECT_EQ(names(), (std::multiset<std::string>{kOther}));
}

TEST_P(FileOpsOnDisk, AFileHasSeveralNames) {
  ASSERT_TRUE(files_.link_at(open(kFile).handle(), dir(), "same"));
  EXPECT_EQ(content("same"), content_of_file());
  EXPECT_EQ(files_.status_at(dir(), "same")->st_ino, files_.status_at(dir(), kFile)->st_ino);
  EXPECT_EQ(error_of(files_.link_at(open(kFile).handle(), dir(), kOther)), EEXIST);
}

TEST_P(FileOpsOnDisk, ALockExcludesOthers) {
  const Descriptor one = open(kFile, O_RDWR);
  const Descriptor two = open(kFile, O_RDWR);
  EXPECT_EQ(files_.try_lock(one.handle(), LOCK_EX), true);
  EXPECT_EQ(files_.try_lock(two.handle(), LOCK_SH), false);
  EXPECT_EQ(files_.try_lock(one.handle(), LOCK_UN), true);
  EXPECT_EQ(files_.try_lock(two.handle(), LOCK_SH), true);
  EXPECT_EQ(files_.try_lock(one.handle(), LOCK_EX), false);
}

TEST_P(FileOpsOnDisk, ASharedLockOfAByteIsSeenByOthersAndExcludesNone) {
  constexpr FileOffset kByte{std::uint64_t{1} << 62};
  const Descriptor one = open(kFile, O_RDWR);
  const Descriptor two = open(kFile, O_RDWR);
  const auto lock = [&](const Descriptor& file, ByteLock action) {
    return files_.try_byte_lock(file.handle(), kByte, action);
  };
  EXPECT_EQ(lock(two, ByteLock::examine), true);
  EXPECT_EQ(lock(one, ByteLock::share), true);
  EXPECT_EQ(lock(one, ByteLock::examine), true) << "its own lock";
  EXPECT_EQ(lock(two, ByteLock::examine), false);
  EXPECT_EQ(files_.try_byte_lock(two.handle(), FileOffset{kByte.value + 1}, ByteLock::examine), true);
  EXPECT_EQ(lock(two, ByteLock::share), true);
  EXPECT_EQ(files_.try_lock(two.handle(), LOCK_EX), true) << "a lock of the other kind";
  EXPECT_EQ(lock(one, ByteLock::examine), false);
  EXPECT_EQ(lock(two, ByteLock::release), true);
  EXPECT_EQ(lock(one, ByteLock::examine), true);
  EXPECT_EQ(error_of(files_.try_byte_lock(one.handle(), FileOffset{~std::uint64_t{0}}, ByteLock::share)), EINVAL);
}

TEST_P(FileOpsOnDisk, AttributesAreKept) {
  const Descriptor file = open(kFile, O_RDWR);
  const auto set = files_.set_attribute(file.handle(), "user.colour", "green", 0);
  if (error_of(set) == EOPNOTSUPP) GTEST_SKIP() << "no extended attributes on this filesystem";
  ASSERT_TRUE(set);
  EXPECT_EQ(files_.get_attribute(file.handle(), "user.colour"), "green");
  const auto names = files_.list_attributes(file.handle());
  ASSERT_TRUE(names);
  EXPECT_EQ(std::count(names->begin(), names->end(), "user.colour"), 1);
  ASSERT_TRUE(files_.remove_attribute(file.handle(), "user.colour"));
  EXPECT_EQ(error_of(files_.get_attribute(file.handle(), "user.colour")), ENODATA);
}

TEST_P(FileOpsOnDisk, ModeAndTimesChange) {
  const Descriptor file = open(kFile);
  ASSERT_TRUE(files_.change_mode(file.handle(), 0640));
  ASSERT_TRUE(files_.set_times(file.handle(), {{{100, 0}, {200, 7}}}));
  const auto status = files_.status(file.handle());
  ASSERT_TRUE(status);
  EXPECT_EQ(status->st_mode & 0777U, 0640U);
  EXPECT_EQ(status->st_mtim.tv_sec, 200);
  EXPECT_EQ(files_.version(file.handle())->modified.tv_nsec, 7);
}

INSTANTIATE_TEST_SUITE_P(OnDisk, FileOpsOnDisk, testing::ValuesIn(on_disk()), name_of);

}  // namespace
}  // namespace cframefs::test
