// Renames that never replace a file, on filesystems with and without the flags of renameat2(2).
#include "frame/io/free_name.h"

#include <cerrno>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::frame {
namespace {

/// Behaves as most FUSE filesystems; with `links` false as exFAT.
class NoFlags final : public test::ForwardingFiles {
 public:
  explicit NoFlags(bool links) : links_(links) {}
  Result<void> rename_at(OpenFile from_dir, const std::string& from, OpenFile to_dir, const std::string& to,
                         unsigned flags) override {
    if (flags != 0) return codec::io_error(EINVAL, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  Result<void> link_at(OpenFile file, OpenFile to_dir, const std::string& to) override {
    if (!links_) return codec::io_error(EPERM, "link");
    return ForwardingFiles::link_at(file, to_dir, to);
  }

 private:
  const bool links_;
};

class FreeNameTest : public ::testing::TestWithParam<int> {
 protected:
  void SetUp() override {
    if (GetParam() == 0) files_ = std::make_unique<test::ForwardingFiles>();
    if (GetParam() != 0) files_ = std::make_unique<NoFlags>(GetParam() == 1);
    dir_ = Descriptor(*files_, *files_->open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY));
    temp_.write("from", std::vector<std::uint8_t>{1});
  }
  bool is_there(const std::string& name) const { return std::filesystem::exists(temp_.path() / name); }

  test::TempDir temp_;
  std::unique_ptr<FileOps> files_;
  Descriptor dir_;
};

TEST_P(FreeNameTest, AFreeNameIsTakenAndTheOldNameRemoved) {
  ASSERT_TRUE(rename_to_free_name(*files_, dir_.handle(), "from", dir_.handle(), "to"));
  EXPECT_FALSE(is_there("from"));
  ASSERT_TRUE(give_free_name(*files_, dir_.handle(), "to", "last"));
  EXPECT_FALSE(is_there("to"));
  EXPECT_EQ(std::filesystem::hard_link_count(temp_.path() / "last"), 1U);
}

TEST_P(FreeNameTest, AnExistingNameIsNotReplaced) {
  temp_.write("to", std::vector<std::uint8_t>{2, 3});
  const auto renamed = rename_to_free_name(*files_, dir_.handle(), "from", dir_.handle(), "to");
  const auto given = give_free_name(*files_, dir_.handle(), "from", "to");
  ASSERT_FALSE(renamed || given);
  EXPECT_EQ(renamed.error().sys, EEXIST);
  EXPECT_EQ(given.error().sys, EEXIST);
  EXPECT_EQ(std::filesystem::file_size(temp_.path() / "to"), 2U);
  EXPECT_TRUE(is_there("from"));
}

TEST_P(FreeNameTest, ADirectoryKeepsItsEntries) {
  std::filesystem::create_directories(temp_.path() / "directory" / "inner");
  ASSERT_TRUE(rename_to_free_name(*files_, dir_.handle(), "directory", dir_.handle(), "moved"));
  EXPECT_TRUE(is_there("moved/inner"));
}

TEST_P(FreeNameTest, AMissingFileGivesENOENT) {
  EXPECT_EQ(rename_to_free_name(*files_, dir_.handle(), "missing", dir_.handle(), "to").error().sys, ENOENT);
  EXPECT_EQ(give_free_name(*files_, dir_.handle(), "missing", "to").error().sys, ENOENT);
  EXPECT_FALSE(is_there("to"));
}

/// Supports links but not renames, and refuses to remove the name "temporary".
class KeepsNames final : public test::ForwardingFiles {
 public:
  Result<void> rename_at(OpenFile /*from_dir*/, const std::string& /*from*/, OpenFile /*to_dir*/,
                         const std::string& /*to*/, unsigned /*flags*/) override {
    return codec::io_error(EINVAL, "rename");
  }
  Result<void> remove_at(OpenFile dir, const std::string& path, bool directory) override {
    if (path == "temporary") return codec::io_error(EIO, "unlink");
    return ForwardingFiles::remove_at(dir, path, directory);
  }
};

TEST(FreeName, IfTheTemporaryNameCannotBeRemovedTheNewNameIs) {
  const test::TempDir temp;
  temp.write("temporary", std::vector<std::uint8_t>{1});
  KeepsNames files;
  const Descriptor dir(files, *files.open_named(temp.path().string(), O_RDONLY | O_DIRECTORY));
  EXPECT_EQ(give_free_name(files, dir.handle(), "temporary", "name").error().sys, EIO);
  EXPECT_FALSE(std::filesystem::exists(temp.path() / "name"));
}

std::string name_of_kind(const ::testing::TestParamInfo<int>& kind) {
  return kind.param == 0 ? "WithFlags" : kind.param == 1 ? "WithLinksAlone" : "WithNeither";
}

INSTANTIATE_TEST_SUITE_P(Filesystems, FreeNameTest, ::testing::Values(0, 1, 2), name_of_kind);

}  // namespace
}  // namespace cframefs::frame
