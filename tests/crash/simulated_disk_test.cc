// The simulated disk loses unsynced changes as documented, and never synced ones.
#include "tests/crash/simulated_disk.h"

#include <cerrno>
#include <set>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "tests/support/failing_files.h"

namespace cframefs {
namespace {

using frame::FileOffset;
using test::DiskBytes;
using test::DiskImage;
using test::SimulatedDisk;

std::set<DiskBytes> images_of(const SimulatedDisk& disk, const std::string& name) {
  std::set<DiskBytes> images;
  disk.crash_images(name, [&](const DiskImage& image) {
    const auto found = image.find(name);
    images.insert(found == image.end() ? DiskBytes{'g', 'o', 'n', 'e'} : found->second);
  });
  return images;
}

TEST(SimulatedDiskTest, UnsyncedWritesAreKeptInEveryCombination) {
  SimulatedDisk disk({{"a", {0, 0}}});
  const auto fd = *disk.open_at(SimulatedDisk::kDirectory, "a", O_RDWR);
  ASSERT_TRUE(disk.pwrite(fd, DiskBytes{1}, FileOffset{0}));
  ASSERT_TRUE(disk.pwrite(fd, DiskBytes{2}, FileOffset{1}));
  EXPECT_EQ(images_of(disk, "a"), (std::set<DiskBytes>{{0, 0}, {1, 0}, {0, 2}, {1, 2}}));
  ASSERT_TRUE(disk.sync(fd, true));
  EXPECT_EQ(images_of(disk, "a"), (std::set<DiskBytes>{{1, 2}}));
}

TEST(SimulatedDiskTest, WritesAreTornAtSectors) {
  SimulatedDisk disk({{"a", DiskBytes(1024)}});
  const auto fd = *disk.open_at(SimulatedDisk::kDirectory, "a", O_RDWR);
  ASSERT_TRUE(disk.pwrite(fd, DiskBytes(200, 1), FileOffset{450}));
  const auto images = images_of(disk, "a");
  EXPECT_EQ(images.size(), 4U);
  for (const DiskBytes& image : images) {
    EXPECT_EQ(image[450], image[511]);
    EXPECT_EQ(image[512], image[649]);
  }
}

TEST(SimulatedDiskTest, OfManyWritesOneOrTwoAreLost) {
  SimulatedDisk disk(DiskImage{{"a", DiskBytes{}}});
  const auto fd = *disk.open_at(SimulatedDisk::kDirectory, "a", O_RDWR);
  for (std::uint64_t i = 0; i < 20; ++i)
    ASSERT_TRUE(disk.pwrite(fd, DiskBytes{1}, FileOffset{i}));
  // All writes, each prefix, all but one, all but two.
  EXPECT_GE(images_of(disk, "a").size(), 20U + 19U * 20U / 2);
}

TEST(SimulatedDiskTest, NamesChangeInOrderAndSyncMakesThemDurable) {
  SimulatedDisk disk({{"a", {1}}});
  const auto fd = *disk.create_at(SimulatedDisk::kDirectory, "b", O_RDWR | O_EXCL, 0600);
  ASSERT_TRUE(disk.pwrite(fd, DiskBytes{2}, FileOffset{0}));
  ASSERT_TRUE(disk.rename_at(SimulatedDisk::kDirectory, "b", SimulatedDisk::kDirectory, "a", 0));
  EXPECT_EQ(images_of(disk, "a"), (std::set<DiskBytes>{{1}, {2}, {}}))
      << "a cut can keep the rename and lose the bytes";
  ASSERT_TRUE(disk.sync(fd, false));
  EXPECT_EQ(images_of(disk, "a"), (std::set<DiskBytes>{{1}, {2}}));
  const auto directory = *disk.open_at(SimulatedDisk::kDirectory, ".", O_RDONLY);
  ASSERT_TRUE(disk.sync(directory, false));
  EXPECT_EQ(images_of(disk, "a"), (std::set<DiskBytes>{{2}}));
  EXPECT_EQ(disk.create_at(SimulatedDisk::kDirectory, "a", O_RDWR | O_EXCL, 0600).error().sys, EEXIST);
}

TEST(SimulatedDiskTest, ASectorOfAWriteThatFailsIsNotTorn) {
  SimulatedDisk disk(DiskImage{{"a", DiskBytes{}}});
  test::FailingFiles files(disk);
  const auto fd = *files.open_at(SimulatedDisk::kDirectory, "a", O_RDWR);
  files.fail(2, ENOSPC, test::FailingFiles::cut_short);
  ASSERT_TRUE(files.pwrite(fd, DiskBytes{1, 2}, FileOffset{0}));
  EXPECT_EQ(files.pwrite(fd, DiskBytes(2000, 3), FileOffset{2}).error().sys, ENOSPC);
  EXPECT_EQ(disk.now().at("a").size(), 512U);
  files.fail(1, ENOSPC, test::FailingFiles::cut_short);
  EXPECT_EQ(files.pwrite(fd, DiskBytes(100, 4), FileOffset{100}).error().sys, ENOSPC);
  EXPECT_EQ(disk.now().at("a")[100], 3) << "a sector is torn";
}

}  // namespace
}  // namespace cframefs
