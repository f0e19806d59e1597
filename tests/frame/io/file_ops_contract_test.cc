// What every implementation of the file operations does: reading, and refusing changes where nothing can be changed.
#include "tests/frame/io/file_ops_contract.h"

#include <cerrno>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <dirent.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "frame/open/open.h"
#include "tests/support/remote_files.h"

namespace cframefs::test {
namespace {

using frame::Descriptor;
using frame::DirectoryEntry;
using frame::FileOffset;
using frame::FileVersion;
using frame::OpenFile;

using FileOpsReading = FileOpsContract;

TEST_P(FileOpsReading, AFileReadsToItsEnd) {
  const Bytes expected = content_of_file();
  const Descriptor file = open(kFile);
  EXPECT_EQ(content(file.handle()), expected);
  EXPECT_EQ(content(file.handle(), 10, 5), Bytes(expected.begin() + 10, expected.begin() + 15));
  EXPECT_EQ(content(file.handle(), expected.size() - 3), Bytes(expected.end() - 3, expected.end()));
  EXPECT_EQ(content(file.handle(), 0, 0), Bytes());
}

TEST_P(FileOpsReading, NothingIsReadPastTheEnd) {
  const Descriptor file = open(kFile);
  const std::uint64_t end = content_of_file().size();
  for (const std::uint64_t at : {end, end + 1, end + 100'000})
    EXPECT_EQ(content(file.handle(), at, 10), Bytes()) << at;
}

TEST_P(FileOpsReading, FilesDoNotMix) {
  const Descriptor file = open(kFile);
  const Descriptor other = open(kOther);
  const Descriptor again = open(kFile);
  EXPECT_NE(file.handle(), again.handle());
  EXPECT_EQ(content(other.handle()), content_of_other());
  EXPECT_EQ(content(file.handle()), content_of_file());
  EXPECT_EQ(content(again.handle()), content_of_file());
}

TEST_P(FileOpsReading, WhatIsMissingOrOfAnotherKindDoesNotOpen) {
  EXPECT_EQ(opening("absent.b2f"), ENOENT);
  EXPECT_EQ(error_of(files_.status_at(dir(), "absent.b2f")), ENOENT);
  EXPECT_EQ(opening(kFile, O_RDONLY | O_DIRECTORY), ENOTDIR);
  EXPECT_NE(opening(kFile + "/below"), 0);
  EXPECT_NE(opening(""), 0);
  EXPECT_EQ(opening("."), 0);
}

TEST_P(FileOpsReading, NoPathLeadsOutOfTheDirectory) {
  for (const std::string& path : kOutside) {
    EXPECT_NE(opening(path), 0) << path;
    EXPECT_NE(error_of(files_.status_at(dir(), path)), 0) << path;
  }
}

TEST_P(FileOpsReading, AFileIsNoDirectory) {
  const Descriptor file = open(kFile);
  EXPECT_NE(error_of(files_.list(file.handle())), 0);
  EXPECT_NE(error_of(files_.open_at(file.handle(), kOther, O_RDONLY)), 0);
  EXPECT_NE(error_of(files_.read_link(file.handle())), 0);
}

TEST_P(FileOpsReading, StatusIsTheSameByNameAndByFile) {
  for (const auto& [name, bytes] : {std::pair(kFile, content_of_file()), std::pair(kOther, content_of_other())}) {
    const Descriptor file = open(name);
    const auto by_file = files_.status(file.handle());
    const auto by_name = files_.status_at(dir(), name);
    ASSERT_TRUE(by_file && by_name) << name;
    EXPECT_TRUE(S_ISREG(by_file->st_mode));
    EXPECT_EQ(by_file->st_mode, by_name->st_mode);
    EXPECT_EQ(static_cast<std::uint64_t>(by_file->st_size), bytes.size());
    EXPECT_EQ(by_file->st_size, by_name->st_size);
    EXPECT_EQ(by_file->st_ino, by_name->st_ino);
    EXPECT_EQ(by_file->st_dev, by_name->st_dev);
  }
  const auto directory = files_.status(dir());
  ASSERT_TRUE(directory);
  EXPECT_TRUE(S_ISDIR(directory->st_mode));
}

TEST_P(FileOpsReading, AListHasEachEntryOnceWithItsTypeAndInode) {
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther}));
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther})) << "a second time";
  const auto entries = files_.list(dir());
  ASSERT_TRUE(entries);
  for (const DirectoryEntry& entry : *entries) {
    const auto status = files_.status_at(dir(), entry.name);
    ASSERT_TRUE(status) << entry.name;
    EXPECT_EQ(entry.type, DT_REG) << entry.name;
    EXPECT_EQ(entry.inode, status->st_ino) << entry.name;
  }
}

TEST_P(FileOpsReading, AFileOpensAgain) {
  const Descriptor file = open(kFile);
  const auto again = files_.reopen(file.handle(), O_RDONLY);
  ASSERT_TRUE(again) << codec::describe(again.error());
  const Descriptor second(files_, *again);
  EXPECT_NE(second.handle(), file.handle());
  EXPECT_EQ(content(second.handle()), content_of_file());
  const auto directory = files_.reopen(dir(), O_RDONLY | O_DIRECTORY);
  ASSERT_TRUE(directory) << codec::describe(directory.error());
  const Descriptor root(files_, *directory);
  EXPECT_EQ(error_of(files_.open_at(root.handle(), kFile, O_RDONLY)), 0);
}

TEST_P(FileOpsReading, AVersionLastsWithoutAChangeAndTellsFilesApart) {
  const Descriptor file = open(kFile);
  const FileVersion version = settled(file.handle());
  EXPECT_EQ(version.size, content_of_file().size());
  const Descriptor again = open(kFile);
  for (const OpenFile same : {file.handle(), again.handle()}) {
    const auto now = files_.version(same);
    ASSERT_TRUE(now);
    EXPECT_TRUE(version.still_matches(*now));
  }
  const auto other = files_.version(open(kOther).handle());
  ASSERT_TRUE(other);
  EXPECT_FALSE(version == *other);
}

TEST_P(FileOpsReading, ADescriptorOfTheKernelIsOfTheFileItSaysItIs) {
  for (const std::string& name : {kFile, kOther}) {
    const Descriptor file = open(name);
    const auto descriptor = files_.system_descriptor(file.handle());
    if (!descriptor) continue;
    struct stat status {};
    ASSERT_EQ(::fstat(descriptor->number, &status), 0) << name;
    const auto shown = files_.status(file.handle());
    ASSERT_TRUE(shown);
    EXPECT_EQ(descriptor->is_of_file, status.st_ino == shown->st_ino) << name;
  }
}

TEST_P(FileOpsReading, HolesAreFoundOnlyWhereNoDataIs) {
  const Descriptor file = open(kFile);
  const std::uint64_t size = content_of_file().size();
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{0}, SEEK_DATA).value_or(FileOffset{0}).value, 0U);
  EXPECT_EQ(files_.seek(file.handle(), FileOffset{0}, SEEK_HOLE).value_or(FileOffset{size}).value, size);
  EXPECT_NE(error_of(files_.seek(file.handle(), FileOffset{size}, SEEK_DATA)), 0);
}

TEST_P(FileOpsReading, AdviceAndSharedLocksHinderNoRead) {
  const Descriptor file = open(kFile);
  const Descriptor again = open(kFile);
  for (const OpenFile one : {file.handle(), again.handle()}) {
    EXPECT_TRUE(files_.try_lock(one, LOCK_SH).value_or(false));
    files_.prefetch(one, FileOffset{0}, 1000);
    files_.note_access(one);
    EXPECT_TRUE(files_.check_rights(one, R_OK));
    EXPECT_TRUE(files_.flush(one));
    EXPECT_TRUE(files_.sync(one, false));
    EXPECT_EQ(content(one), content_of_file());
  }
  EXPECT_TRUE(files_.try_lock(file.handle(), LOCK_UN).value_or(false));
}

TEST_P(FileOpsReading, AFrameOpensFromIt) {
  const auto frame = frame::open_container(files_, std::make_shared<const Descriptor>(open(kFile)), nullptr);
  ASSERT_TRUE(frame) << codec::describe(frame.error());
  EXPECT_EQ((*frame)->parameters().nbytes, 3000U);
  const auto summary = frame::summarise(files_, open(kOther).handle());
  ASSERT_TRUE(summary) << codec::describe(summary.error());
  EXPECT_EQ(summary->nbytes, 900U);
}

INSTANTIATE_TEST_SUITE_P(All, FileOpsReading, testing::ValuesIn(all()), name_of);

// ---- refusing ----------------------------------------------------------------------------------------------------

using FileOpsRefusing = FileOpsContract;

TEST_P(FileOpsRefusing, NoNameChanges) {
  EXPECT_EQ(opening(kFile, O_RDWR), EROFS);
  EXPECT_EQ(error_of(files_.create_at(dir(), "new", O_RDWR | O_EXCL, 0600)), EROFS);
  EXPECT_EQ(error_of(files_.create_at(dir(), kFile, O_RDWR, 0600)), EROFS);
  for (const unsigned flags : {0U, unsigned{RENAME_NOREPLACE}, unsigned{RENAME_EXCHANGE}})
    EXPECT_EQ(error_of(files_.rename_at(dir(), kFile, dir(), kOther, flags)), EROFS) << flags;
  EXPECT_EQ(error_of(files_.remove_at(dir(), kFile, false)), EROFS);
  EXPECT_EQ(error_of(files_.make_directory_at(dir(), "new", 0700)), EROFS);
  EXPECT_EQ(error_of(files_.make_node_at(dir(), "new", S_IFIFO | 0600, 0)), EROFS);
  EXPECT_EQ(error_of(files_.make_symlink_at(kFile, dir(), "new")), EROFS);
  EXPECT_EQ(error_of(files_.link_at(open(kFile).handle(), dir(), "new")), EROFS);
  EXPECT_EQ(names(), (std::multiset<std::string>{kFile, kOther}));
}

TEST_P(FileOpsRefusing, NoFileChanges) {
  for (const std::string& name : {kFile, kOther}) {
    const Descriptor file = open(name);
    const FileVersion before = settled(file.handle());
    EXPECT_EQ(error_of(files_.pwrite(file.handle(), Bytes{1}, FileOffset{0})), EROFS);
    EXPECT_EQ(error_of(files_.truncate(file.handle(), 0)), EROFS);
    EXPECT_EQ(error_of(files_.allocate(file.handle(), 0, FileOffset{0}, 1)), EROFS);
    EXPECT_EQ(error_of(files_.change_mode(file.handle(), 0600)), EROFS);
    EXPECT_EQ(error_of(files_.change_owner(file.handle(), 0, 0)), EROFS);
    EXPECT_EQ(error_of(files_.set_times(file.handle(), {})), EROFS);
    EXPECT_EQ(error_of(files_.set_attribute(file.handle(), "user.colour", "green", 0)), EROFS);
    EXPECT_EQ(error_of(files_.remove_attribute(file.handle(), "user.colour")), EROFS);
    const auto after = files_.version(file.handle());
    ASSERT_TRUE(after);
    EXPECT_TRUE(before.still_matches(*after)) << name;
  }
  EXPECT_EQ(content(kFile), content_of_file());
}

INSTANTIATE_TEST_SUITE_P(ReadOnly, FileOpsRefusing, testing::ValuesIn(read_only()), name_of);

TEST(RemoteFilesTest, AnotherTagIsAnotherVersion) {
  RemoteFiles files;
  files.put(kFile, Bytes{1, 2}, "1");
  const Descriptor file(files, *files.open_at(RemoteFiles::kDirectory, kFile, O_RDONLY));
  const auto before = files.version(file.handle());
  files.put(kFile, Bytes{3, 4}, "2");
  const auto after = files.version(file.handle());
  ASSERT_TRUE(before && after);
  EXPECT_FALSE(before->still_matches(*after));
  EXPECT_TRUE(after->still_matches(*files.version(file.handle())));
}

}  // namespace
}  // namespace cframefs::test
