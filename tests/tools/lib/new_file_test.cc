// A new file takes its place when it is whole, and only then, whatever fails.
#include "tools/lib/new_file.h"

#include <array>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>

#include "frame/io/replacement_file.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Fails one kind of call; has files without a name, or not, as NFS and FUSE.
class FailingFiles final : public ForwardingFiles {
 public:
  enum class Call { none, create, sync_file, set_times, sync_directory, link, rename, rename_without_replacing };
  explicit FailingFiles(Call failing, bool unnamed = true) : failing_(failing), unnamed_(unnamed) {}
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    if (failing_ == Call::create) return codec::io_error(EDQUOT, "create");
    if (!unnamed_ && (flags & O_TMPFILE) == O_TMPFILE) return codec::io_error(EOPNOTSUPP, "create");
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override {
    const bool directory = S_ISDIR(status(file)->st_mode);
    if (failing_ == (directory ? Call::sync_directory : Call::sync_file)) return codec::io_error(EIO, "fsync");
    return ForwardingFiles::sync(file, data_only);
  }
  codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override {
    if (failing_ == Call::set_times) return codec::io_error(EPERM, "utimens");
    return ForwardingFiles::set_times(file, times);
  }
  codec::Result<void> link_at(frame::OpenFile file, frame::OpenFile to_dir, const std::string& to) override {
    if (failing_ == Call::link) return codec::io_error(EPERM, "link");
    return ForwardingFiles::link_at(file, to_dir, to);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    if (failing_ == Call::rename) return codec::io_error(EPERM, "rename");
    // As filesystems do that know no flags.
    if (failing_ == Call::rename_without_replacing && flags != 0) return codec::io_error(EINVAL, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }

 private:
  const Call failing_;
  const bool unnamed_;
};

using Call = FailingFiles::Call;

class NewFileTest : public testing::Test {
 protected:
  std::string place() const { return (dir_.path() / "x").string(); }

  codec::Result<void> make(frame::FileOps& files, bool replace, const Bytes& content) {
    auto file = tools::NewFile::create(files, place(), replace, 0600);
    if (!file) return codec::Failure(file.error());
    file->keep_times({timespec{5, 0}, timespec{kTime, 0}});
    EXPECT_TRUE(files.pwrite(file->handle(), content, frame::FileOffset{0}));
    return file->publish();
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(dir_.path()), std::filesystem::directory_iterator()));
  }
  static constexpr time_t kTime = 978'307'200;  // 2001
  TempDir dir_;
};

TEST_F(NewFileTest, AppearsWhenPublished) {
  for (const bool unnamed : {true, false}) {
    FailingFiles files(Call::none, unnamed);
    std::filesystem::remove(place());
    {
      auto file = tools::NewFile::create(files, place(), false, 0600);
      ASSERT_TRUE(file);
      EXPECT_FALSE(std::filesystem::exists(place()));
      EXPECT_EQ(entries(), unnamed ? 0U : 1U);
    }
    EXPECT_EQ(entries(), 0U);
    EXPECT_TRUE(make(files, false, {1, 2}));
    EXPECT_EQ(file_bytes(place()), (Bytes{1, 2}));
    EXPECT_EQ(make(files, false, {3}).error().kind, codec::ErrorKind::invalid);
    EXPECT_EQ(file_bytes(place()), (Bytes{1, 2}));
    EXPECT_TRUE(make(files, true, {3}));
    EXPECT_EQ(file_bytes(place()), (Bytes{3}));
    EXPECT_EQ(entries(), 1U);
    struct stat status = {};
    ASSERT_EQ(::stat(place().c_str(), &status), 0);
    EXPECT_EQ(status.st_mtim.tv_sec, kTime);
    EXPECT_EQ(status.st_mode & 0777, 0600U);
  }
}

TEST_F(NewFileTest, DoesNotReplaceWhatCameMeanwhile) {
  for (const bool unnamed : {true, false}) {
    for (const Call call : {Call::none, Call::rename_without_replacing}) {
      std::filesystem::remove(place());
      FailingFiles files(call, unnamed);
      auto file = tools::NewFile::create(files, place(), false, 0600);
      ASSERT_TRUE(file);
      dir_.write("x", Bytes{7});
      EXPECT_EQ(file->publish().error().kind, codec::ErrorKind::invalid);
      EXPECT_EQ(file_bytes(place()), (Bytes{7}));
    }
  }
  EXPECT_EQ(entries(), 1U);
}

TEST_F(NewFileTest, WhereRenamingKnowsNoFlags) {
  FailingFiles files(Call::rename_without_replacing, false);
  EXPECT_TRUE(make(files, false, {4}));
  EXPECT_EQ(file_bytes(place()), (Bytes{4}));
}

TEST_F(NewFileTest, EveryFailureLeavesTheOldFile) {
  dir_.write("x", Bytes{5});
  const std::vector<std::pair<Call, bool>> cases = {
      {Call::create, true},     {Call::create, false},   {Call::sync_file, true},
      {Call::sync_file, false}, {Call::set_times, true}, {Call::set_times, false},
      {Call::link, true},       {Call::rename, true},    {Call::rename, false}};
  for (const auto& [call, unnamed] : cases) {
    FailingFiles files(call, unnamed);
    const auto made = make(files, true, {6});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, codec::ErrorKind::io);
    EXPECT_EQ(made.error().path, place());
    EXPECT_EQ(file_bytes(place()), (Bytes{5}));
    EXPECT_EQ(entries(), 1U);
  }
  // Too late to take it back, but told.
  FailingFiles files(Call::sync_directory);
  EXPECT_FALSE(make(files, true, {6}));
  EXPECT_EQ(file_bytes(place()), (Bytes{6}));
  EXPECT_EQ(entries(), 1U);
}

/// Remembers the name that a file is made under.
class NamesMade final : public ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    if ((flags & O_TMPFILE) == O_TMPFILE) return codec::io_error(EOPNOTSUPP, "create");
    made = path;
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  std::string made;
};

// A mount below would store it as another kind of file, and not rename it to its own name.
TEST_F(NewFileTest, TheTemporaryNameHasTheSuffixOfTheName) {
  NamesMade files;
  for (const char* name : {"y.b2frame", "plain", ".hidden", "long.suffix-that-is-none-of-ours"}) {
    const std::string path = (dir_.path() / name).string();
    {
      auto given_up = tools::NewFile::create(files, path, false, 0600);
      ASSERT_TRUE(given_up) << codec::describe(given_up.error());
      EXPECT_TRUE(files.made.starts_with(frame::kTemporaryPrefix));
      EXPECT_EQ(files.made.ends_with(".b2frame"), std::string(name) == "y.b2frame") << files.made;
      EXPECT_FALSE(std::filesystem::exists(path));
    }
    EXPECT_FALSE(std::filesystem::exists(dir_.path() / files.made));
    auto file = tools::NewFile::create(files, path, false, 0600);
    ASSERT_TRUE(file && file->publish());
    EXPECT_TRUE(std::filesystem::exists(path));
  }
  EXPECT_EQ(entries(), 4U);
}

TEST_F(NewFileTest, TwoAtOnceDoNotMeet) {
  for (const bool unnamed : {true, false}) {
    FailingFiles files(Call::none, unnamed);
    std::filesystem::remove(place());
    auto one = tools::NewFile::create(files, place(), true, 0600);
    auto two = tools::NewFile::create(files, place(), true, 0600);
    ASSERT_TRUE(one && two);
    EXPECT_EQ(entries(), unnamed ? 0U : 2U);
    EXPECT_TRUE(one->publish());
    EXPECT_TRUE(two->publish());
    EXPECT_EQ(entries(), 1U);
  }
}

TEST_F(NewFileTest, WhatAKilledProgramHasLeftIsRemovedByTheNext) {
  FailingFiles files(Call::none, false);
  const std::string left = dir_.write(".cframefs-tmp.pack.0", Bytes{1}).string();
  const std::array<struct timespec, 2> old = {timespec{kTime, 0}, timespec{kTime, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), old.data(), 0), 0);
  EXPECT_TRUE(make(files, false, {2}));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(NewFileTest, WhatMayBeInUseStays) {
  FailingFiles files(Call::none, false);
  const std::string left = dir_.write(".cframefs-tmp.pack.0", Bytes{1}).string();
  // It was written just now.
  EXPECT_TRUE(make(files, true, {2}));
  EXPECT_EQ(file_bytes(left), (Bytes{1}));
  // It is old, and locked.
  const std::array<struct timespec, 2> old = {timespec{kTime, 0}, timespec{kTime, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, left.c_str(), old.data(), 0), 0);
  const auto fd = files.open_named(left, O_RDONLY);
  ASSERT_TRUE(fd && files.try_lock(*fd, LOCK_EX));
  EXPECT_TRUE(make(files, true, {3}));
  EXPECT_EQ(file_bytes(left), (Bytes{1}));
  files.close(*fd);
  // No file of ours: a link, a directory.
  std::filesystem::remove(left);
  std::filesystem::create_symlink("x", left);
  EXPECT_TRUE(make(files, true, {4}));
  EXPECT_TRUE(std::filesystem::is_symlink(left));
  EXPECT_EQ(file_bytes(place()), (Bytes{4}));
}

TEST_F(NewFileTest, NamesAsLongAsNamesCanBe) {
  const std::string longest(255, 'n');
  auto file = tools::NewFile::create(frame::system_files(), (dir_.path() / longest).string(), false, 0600);
  ASSERT_TRUE(file);
  EXPECT_TRUE(file->publish());
  EXPECT_TRUE(std::filesystem::exists(dir_.path() / longest));
}

}  // namespace
}  // namespace cframefs::test
