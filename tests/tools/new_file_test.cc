// A new file takes its place when it is whole, and only then, whatever fails.
#include "tools/new_file.h"

#include <filesystem>

#include <gtest/gtest.h>

#include "frame/replacement_file.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {
namespace {

using Bytes = std::vector<std::uint8_t>;

/// Fails one kind of call.
class FailingFiles final : public ForwardingFiles {
 public:
  enum class Call { none, create, sync_file, sync_folder, rename, rename_without_replacing };
  explicit FailingFiles(Call failing) : failing_(failing) {}
  codec::Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) override {
    if (failing_ == Call::create) return codec::io_error(EDQUOT, "create");
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<void> sync(int fd, bool data_only) override {
    const bool folder = S_ISDIR(status(fd)->st_mode);
    if (failing_ == (folder ? Call::sync_folder : Call::sync_file)) return codec::io_error(EIO, "fsync");
    return ForwardingFiles::sync(fd, data_only);
  }
  codec::Result<void> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                                unsigned flags) override {
    if (failing_ == Call::rename) return codec::io_error(EPERM, "rename");
    // As filesystems do that know no flags.
    if (failing_ == Call::rename_without_replacing && flags != 0) return codec::io_error(EINVAL, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }

 private:
  const Call failing_;
};

using Call = FailingFiles::Call;

class NewFileTest : public testing::Test {
 protected:
  std::string place() const { return (dir_.path() / "x").string(); }

  codec::Result<void> make(frame::FileOps& files, bool replace, const Bytes& content) {
    auto file = tools::NewFile::create(files, place(), replace, 0600);
    if (!file) return codec::Failure(file.error());
    EXPECT_TRUE(files.pwrite(file->fd(), content, frame::FileOffset{0}));
    return file->publish();
  }
  std::size_t entries() const {
    return static_cast<std::size_t>(
        std::distance(std::filesystem::directory_iterator(dir_.path()), std::filesystem::directory_iterator()));
  }
  TempDir dir_;
};

TEST_F(NewFileTest, AppearsWhenPublished) {
  {
    auto file = tools::NewFile::create(frame::system_files(), place(), false, 0600);
    ASSERT_TRUE(file);
    EXPECT_FALSE(std::filesystem::exists(place()));
    EXPECT_EQ(entries(), 1U);
  }
  EXPECT_EQ(entries(), 0U);
  EXPECT_TRUE(make(frame::system_files(), false, {1, 2}));
  EXPECT_EQ(file_bytes(place()), (Bytes{1, 2}));
  EXPECT_EQ(make(frame::system_files(), false, {3}).error().kind, codec::ErrorKind::invalid);
  EXPECT_EQ(file_bytes(place()), (Bytes{1, 2}));
  EXPECT_TRUE(make(frame::system_files(), true, {3}));
  EXPECT_EQ(file_bytes(place()), (Bytes{3}));
  EXPECT_EQ(entries(), 1U);
}

TEST_F(NewFileTest, DoesNotReplaceWhatCameMeanwhile) {
  for (const Call call : {Call::none, Call::rename_without_replacing}) {
    std::filesystem::remove(place());
    FailingFiles files(call);
    auto file = tools::NewFile::create(files, place(), false, 0600);
    ASSERT_TRUE(file);
    dir_.write("x", Bytes{7});
    EXPECT_EQ(file->publish().error().kind, codec::ErrorKind::invalid);
    EXPECT_EQ(file_bytes(place()), (Bytes{7}));
  }
  EXPECT_EQ(entries(), 1U);
}

TEST_F(NewFileTest, WhereRenamingKnowsNoFlags) {
  FailingFiles files(Call::rename_without_replacing);
  EXPECT_TRUE(make(files, false, {4}));
  EXPECT_EQ(file_bytes(place()), (Bytes{4}));
}

TEST_F(NewFileTest, EveryFailureLeavesTheOldFile) {
  dir_.write("x", Bytes{5});
  for (const Call call : {Call::create, Call::sync_file, Call::rename}) {
    FailingFiles files(call);
    const auto made = make(files, true, {6});
    ASSERT_FALSE(made);
    EXPECT_EQ(made.error().kind, codec::ErrorKind::io);
    EXPECT_EQ(made.error().path, place());
    EXPECT_EQ(file_bytes(place()), (Bytes{5}));
    EXPECT_EQ(entries(), 1U);
  }
  // Too late to take it back, but told.
  FailingFiles files(Call::sync_folder);
  EXPECT_FALSE(make(files, true, {6}));
  EXPECT_EQ(file_bytes(place()), (Bytes{6}));
  EXPECT_EQ(entries(), 1U);
}

/// Remembers the name that a file is made under.
class NamesMade final : public ForwardingFiles {
 public:
  codec::Result<int> create_at(int dir, const std::string& path, int flags, mode_t mode) override {
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
  auto one = tools::NewFile::create(frame::system_files(), place(), true, 0600);
  auto two = tools::NewFile::create(frame::system_files(), place(), true, 0600);
  ASSERT_TRUE(one && two);
  EXPECT_EQ(entries(), 2U);
  EXPECT_TRUE(one->publish());
  EXPECT_TRUE(two->publish());
  EXPECT_EQ(entries(), 1U);
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
