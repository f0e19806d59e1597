// Attributes that programs ask for on each entry of a listed store, which may have tens of thousands of entries.
#include <cerrno>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/store/store_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"
#include "tests/support/zip_builder.h"

namespace cframefs::frame {
namespace {

using test::Bytes;

class StoreEntries : public ::testing::Test {
 protected:
  StoreEntries() {
    const Bytes leaf = test::plain_frame(Bytes(100, 7), 100).build();
    directory_.write("s.b2z", test::zip_file({{"group/x.b2f", leaf}, {"embed.b2e", test::embed_frame({})}}));
    std::filesystem::create_directories(directory_.path() / "d.b2d/on-disk");
    directory_.write("d.b2d/embed.b2e", test::embed_frame({{"/inside/x", leaf}}));
    directory_.write("d.b2d/on-disk/x.b2frame", leaf);
    directory_.write("f.b2frame", leaf);
  }

  Descriptor open(const std::string& path) { return {files_, files_.open_at(root_.handle(), path, O_RDONLY).value()}; }

  test::TempDir directory_;
  StoreFiles files_{system_files()};
  const Descriptor root_{files_, files_.open_named(directory_.path().string(), O_RDONLY).value()};
};

TEST_F(StoreEntries, HaveNoSecurityLabels) {
  const auto error_of = [&](const char* path, const char* name) {
    const auto value = files_.get_attribute(open(path).handle(), name);
    return value ? 0 : value.error().sys;
  };
  // After EOPNOTSUPP, ls(1) does not ask for the label of other entries, which takes a third of the time.
  for (const char* path : {"s.b2z/group", "s.b2z/group/x.b2f", "d.b2d/inside"}) {
    EXPECT_EQ(error_of(path, "security.selinux"), EOPNOTSUPP) << path;
    EXPECT_EQ(error_of(path, "user.none"), ENODATA) << path;
  }
  for (const char* path : {"s.b2z", "d.b2d", "d.b2d/on-disk", "f.b2frame"}) {
    const Descriptor plain(system_files(),
                           system_files().open_named((directory_.path() / path).string(), O_RDONLY).value());
    const auto there = system_files().get_attribute(plain.handle(), "security.selinux");
    EXPECT_EQ(error_of(path, "security.selinux"), there ? 0 : there.error().sys) << path << ": as on disk";
  }
}

TEST_F(StoreEntries, AreOnDiskOnlyIfFilesOfTheirOwn) {
  for (const char* path : {"s.b2z", "d.b2d", "d.b2d/on-disk", "d.b2d/on-disk/x.b2frame", "f.b2frame"})
    EXPECT_TRUE(files_.system_descriptor(open(path).handle())->is_of_file) << path;
  for (const char* path : {"s.b2z/group", "s.b2z/group/x.b2f", "d.b2d/inside"})
    EXPECT_FALSE(files_.system_descriptor(open(path).handle())->is_of_file) << path;
}

}  // namespace
}  // namespace cframefs::frame
