// SourceTree::identity() of objects on a server: their tags tell more than their times.
#include <ctime>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/cframe/sparse_frame.h"
#include "fs/tree/source_tree.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

/// Files as of a server, just made, of which the versions have a tag or none.
class ServedFiles final : public test::ForwardingFiles {
 public:
  explicit ServedFiles(bool has_tags) : has_tags_(has_tags) {}
  bool is_remote() const override { return true; }
  codec::Result<struct stat> status(frame::OpenFile file) override { return new_made(ForwardingFiles::status(file)); }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    return new_made(ForwardingFiles::status_at(dir, path));
  }
  codec::Result<frame::FileVersion> version(frame::OpenFile file) override {
    auto version = ForwardingFiles::version(file);
    if (version) version->racy = !has_tags_;
    return version;
  }

 private:
  static codec::Result<struct stat> new_made(codec::Result<struct stat> status) {
    if (status) status->st_ctim = {std::time(nullptr), 0};
    return status;
  }

  const bool has_tags_;
};

TEST(SourceIdentity, AnObjectWithATagIsKnownHoweverNewItIs) {
  const test::TempDir directory;
  const std::vector<std::uint8_t> content{'x'};
  directory.write("x.b2frame", content);
  std::filesystem::create_directory(directory.path() / "s.b2frame");
  directory.write(std::string("s.b2frame/") + frame::kSparseIndexName, content);
  for (const bool has_tags : {false, true}) {
    ServedFiles files(has_tags);
    MountOptions options;
    options.source = directory.path();
    SourceTree tree(files, options);
    ASSERT_TRUE(tree.open());
    for (const auto& [name, kind] :
         {std::pair("x.b2frame", EntryKind::frame), std::pair("s.b2frame", EntryKind::sparse_frame)}) {
      const auto file = tree.open_entry(tree.root()->handle(), name);
      ASSERT_TRUE(file);
      const auto identity = tree.identity((*file)->handle(), kind);
      ASSERT_TRUE(identity);
      EXPECT_EQ(identity->racy, !has_tags) << name;
    }
  }
}

}  // namespace
}  // namespace cframefs::fs
