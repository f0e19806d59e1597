// memory_limits.h with made-up /proc and control group files.
#include "fs/util/memory_limits.h"

#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

class MemoryLimits : public ::testing::Test {
 protected:
  void put(const std::string& path, const std::string& text) const {
    const std::filesystem::path whole = directory_.path().string() + path;
    std::filesystem::create_directories(whole.parent_path());
    std::ofstream(whole) << text;
  }
  void limit(const std::string& path, std::uint64_t bytes) const { put(path, std::to_string(bytes) + "\n"); }
  /// `groups`: /proc/self/cgroup. `mounts`: mountinfo(5) after the first three fields, one mount for each line.
  void system(const std::string& groups, const std::string& mounts) const {
    put("/proc/self/cgroup", groups);
    std::string lines = "22 27 0:21 / /proc rw,relatime - proc proc rw\n";
    for (std::size_t at = 0; at < mounts.size();) {
      const std::size_t end = mounts.find('\n', at);
      lines += "31 23 0:28 " + mounts.substr(at, end - at) + "\n";
      at = end + 1;
    }
    put("/proc/self/mountinfo", lines);
  }
  std::uint64_t found() const { return control_group_limit(directory_.path()); }

  test::TempDir directory_;
};

TEST_F(MemoryLimits, WithoutProcThereIsNoLimit) {
  EXPECT_EQ(found(), kNoMemoryLimit);
}

TEST_F(MemoryLimits, Version2CountsTheGroupAndAllParents) {
  system("0::/a.slice/b.service\n", "/ /sys/fs/cgroup rw shared:4 - cgroup2 cgroup2 rw,nsdelegate\n");
  put("/sys/fs/cgroup/a.slice/b.service/memory.max", "max\n");
  put("/sys/fs/cgroup/a.slice/b.service/memory.high", "max\n");
  EXPECT_EQ(found(), kNoMemoryLimit);
  limit("/sys/fs/cgroup/a.slice/memory.max", 512 * kMiB);
  EXPECT_EQ(found(), 512 * kMiB);
  limit("/sys/fs/cgroup/a.slice/b.service/memory.max", 400 * kMiB);
  EXPECT_EQ(found(), 400 * kMiB);
  limit("/sys/fs/cgroup/a.slice/memory.high", 300 * kMiB);
  EXPECT_EQ(found(), 300 * kMiB);
  limit("/sys/fs/cgroup/a.slice/other.service/memory.max", kMiB);
  EXPECT_EQ(found(), 300 * kMiB);
  limit("/sys/fs/cgroup/memory.max", 200 * kMiB);
  EXPECT_EQ(found(), 200 * kMiB);
}

TEST_F(MemoryLimits, Version1HasATreeForMemory) {
  system("9:name=systemd:/x\n5:cpu,memory:/a/b\n4:cpuset:/c\n",
         "/ /sys/fs/cgroup/cpuset rw - cgroup cgroup rw,cpuset\n"
         "/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,cpu,memory\n");
  limit("/sys/fs/cgroup/cpuset/c/memory.limit_in_bytes", kMiB);
  limit("/sys/fs/cgroup/memory/x/memory.limit_in_bytes", kMiB);
  limit("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", 9223372036854771712U);
  EXPECT_EQ(found(), 9223372036854771712U);
  limit("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 256 * kMiB);
  EXPECT_EQ(found(), 256 * kMiB);
  limit("/sys/fs/cgroup/memory/a/b/memory.limit_in_bytes", 128 * kMiB);
  EXPECT_EQ(found(), 128 * kMiB);
}

TEST_F(MemoryLimits, BothVersionsAtOnce) {
  system("4:memory:/a\n0::/b\n",
         "/ /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n/ /sys/fs/cgroup/unified rw - cgroup2 cgroup2 rw\n");
  limit("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 300 * kMiB);
  limit("/sys/fs/cgroup/unified/b/memory.max", 200 * kMiB);
  EXPECT_EQ(found(), 200 * kMiB);
  limit("/sys/fs/cgroup/memory/a/memory.limit_in_bytes", 100 * kMiB);
  EXPECT_EQ(found(), 100 * kMiB);
}

TEST_F(MemoryLimits, AContainerSeesItsOwnPartOfTheTree) {
  // The path is that of the host, and the mount shows the container's group as its root.
  system("4:memory:/docker/12ab/inner\n", "/docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  limit("/sys/fs/cgroup/memory/memory.limit_in_bytes", 200 * kMiB);
  EXPECT_EQ(found(), 200 * kMiB);
  limit("/sys/fs/cgroup/memory/inner/memory.limit_in_bytes", 100 * kMiB);
  EXPECT_EQ(found(), 100 * kMiB);
  // A group whose name only begins like the container's is another group.
  system("4:memory:/docker/12abc/inner\n", "/docker/12ab /sys/fs/cgroup/memory ro - cgroup cgroup rw,memory\n");
  EXPECT_EQ(found(), 200 * kMiB);
}

TEST_F(MemoryLimits, APathThatLeadsOutOfWhatTheMountShows) {
  for (const char* group : {"0::/..\n", "0::/../other/x\n", "0::/\n"}) {
    system(group, "/ /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
    limit("/sys/fs/cgroup/memory.max", 200 * kMiB);
    limit("/sys/fs/memory.max", kMiB);
    EXPECT_EQ(found(), 200 * kMiB) << group;
  }
  system("0::/\n", "/../.. /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(found(), 200 * kMiB);
}

TEST_F(MemoryLimits, PlacesWithBlanks) {
  system("0::/with a blank\n", "/ /sys/fs/control\\040groups rw - cgroup2 cgroup2 rw\n");
  limit("/sys/fs/control groups/with a blank/memory.max", 200 * kMiB);
  EXPECT_EQ(found(), 200 * kMiB);
}

TEST_F(MemoryLimits, MalformedLinesAreNoLimit) {
  system("0::/a\n:\n4\n\n:::::\n", "/ - cgroup2\n/ /sys/fs/cgroup rw\n/ /x\\04 rw - cgroup2 cgroup2 rw\n");
  EXPECT_EQ(found(), kNoMemoryLimit);
  put("/x\\04/memory.max", "nothing\n");
  EXPECT_EQ(found(), kNoMemoryLimit);
}

TEST_F(MemoryLimits, TheSmallestLimitCounts) {
  system("0::/\n", "/ /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n");
  limit("/sys/fs/cgroup/memory.max", 300 * kMiB);
  MemorySources sources{directory_.path(), 8192 * kMiB, kNoMemoryLimit};
  EXPECT_EQ(usable_memory(sources), 300 * kMiB);
  sources.address_space = 250 * kMiB;
  EXPECT_EQ(usable_memory(sources), 250 * kMiB);
  sources.physical = 200 * kMiB;
  EXPECT_EQ(usable_memory(sources), 200 * kMiB);
}

TEST_F(MemoryLimits, DefaultsAreAFractionOfMemory) {
  // At 256 MiB the rest is for the program itself, and the 64 MiB that it may take beyond its limits.
  EXPECT_EQ(default_cache_size(256 * kMiB), 32 * kMiB);
  EXPECT_EQ(default_dirty_limit(256 * kMiB), 32 * kMiB);
  EXPECT_EQ(default_cache_size(1024 * kMiB), 128 * kMiB);
  EXPECT_EQ(default_dirty_limit(1024 * kMiB), 64 * kMiB);
  EXPECT_EQ(default_cache_size(2048 * kMiB), 256 * kMiB);
  EXPECT_EQ(default_dirty_limit(2048 * kMiB), 128 * kMiB);
  EXPECT_EQ(default_cache_size(kNoMemoryLimit), 1024 * kMiB);
  EXPECT_EQ(default_dirty_limit(kNoMemoryLimit), 512 * kMiB);
  EXPECT_EQ(default_cache_size(0), 8 * kMiB);
  EXPECT_EQ(default_dirty_limit(0), 8 * kMiB);
}

}  // namespace
}  // namespace cframefs::fs
