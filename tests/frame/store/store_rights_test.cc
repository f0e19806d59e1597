// Stores in directories that the user may search but not list: what is in them can be opened by its path.
#include <cerrno>
#include <filesystem>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/store/store_files.h"
#include "tests/support/array_builder.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::frame {
namespace {

/// As for a user without the right to read directories.
class UnlistableFiles final : public test::ForwardingFiles {
 public:
  Result<OpenFile> open_named(const std::string& path, int flags) override {
    if ((flags & O_PATH) == 0 && std::filesystem::is_directory(path)) return codec::io_error(EACCES, "open");
    return ForwardingFiles::open_named(path, flags);
  }
};

TEST(StoreRights, ALeafIsOpenedInADirectoryThatCannotBeListed) {
  const test::TempDir directory;
  const test::Bytes leaf = test::plain_frame(test::varied_items(500), 700).build();
  directory.write("s.b2z", test::zip_file({{"leaf.b2f", leaf}, {"embed.b2e", test::embed_frame({})}}));
  UnlistableFiles below;
  StoreFiles files(below);
  const auto opened = files.open_named((directory.path() / "s.b2z" / "leaf.b2f").string(), O_RDONLY);
  ASSERT_TRUE(opened) << describe(opened.error());
  const Descriptor file(files, *opened);
  test::Bytes read(leaf.size() + 1);
  const auto got = files.pread(file.handle(), read, FileOffset{0});
  ASSERT_TRUE(got) << describe(got.error());
  read.resize(*got);
  EXPECT_EQ(read, leaf);
}

}  // namespace
}  // namespace cframefs::frame
