// The files of a disk cache that stay open: which ones, how many, and what becomes of those that are removed.
#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "frame/remote/objects/disk_cache.h"
#include "tests/frame/remote/objects/served_objects.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test::open_disk_files_tests {
namespace {

namespace fs = std::filesystem;
using frame::DiskCache;

constexpr std::uint64_t kMiB = 1U << 20;
const std::string kState = "http://host/x\n1000\ntag \"a\"";

class OpenDiskFiles : public ::testing::Test {
 protected:
  std::unique_ptr<DiskCache> open(std::uint64_t most = 64 * kMiB) {
    auto opened = DiskCache::open(directory_.string(), most, 0);
    EXPECT_TRUE(opened) << opened.error().reason;
    return opened ? std::move(*opened) : nullptr;
  }
  /// All files in sub-directories.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (!entry.is_directory() && entry.path().filename() != "budget") found.push_back(entry.path());
    }
    return found;
  }

  TempDir temp_;
  const fs::path directory_ = temp_.path() / "cache";
};

/// Returns how many of the blocks 0 to count - 1, of 100 bytes each, can be read.
std::size_t readable(DiskCache& cache, std::size_t count) {
  std::size_t found = 0;
  std::vector<std::uint8_t> into(100);
  for (std::uint64_t block = 0; block < count; ++block)
    found += cache.read(kState, {block, into.size(), 0}, into) ? 1 : 0;
  return found;
}

std::size_t open_files_that_were_removed() {
  std::size_t found = 0;
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code error;
    found += fs::read_symlink(entry, error).string().ends_with(" (deleted)") ? 1 : 0;
  }
  return found;
}

TEST_F(OpenDiskFiles, ABlockThatWasPreparedIsReadWithoutItsName) {
  const auto cache = open();
  const auto bytes = object_bytes(100);
  cache->keep(kState, 0, bytes);
  EXPECT_TRUE(cache->prepare(kState, 0));
  EXPECT_FALSE(cache->prepare(kState, 1));
  fs::remove(files().at(0));
  std::vector<std::uint8_t> into(bytes.size());
  EXPECT_TRUE(cache->read(kState, {0, bytes.size(), 0}, into));
  EXPECT_EQ(into, bytes);
}

TEST_F(OpenDiskFiles, KeepsHundredsOfFilesOpenButFewBesideASmallBound) {
  constexpr std::size_t kCount = 300;
  for (const auto& [bound, kept] : {std::pair{std::uint64_t{8} << 30, kCount}, std::pair{64 * kMiB, std::size_t{16}}}) {
    const auto cache = open(bound);
    for (std::uint64_t block = 0; block < kCount; ++block)
      cache->keep(kState, block, object_bytes(100));
    for (std::uint64_t block = 0; block < kCount; ++block)
      EXPECT_TRUE(cache->prepare(kState, block));
    for (const auto& file : files())
      fs::remove(file);
    EXPECT_EQ(readable(*cache, kCount), kept);
  }
}

TEST_F(OpenDiskFiles, LetsGoOfFilesThatAnotherProcessRemoved) {
  const auto cache = open(std::uint64_t{8} << 30);
  const std::size_t before = open_files_that_were_removed();
  for (std::uint64_t block = 0; block < 20; ++block)
    cache->keep(kState, block, object_bytes(100));
  EXPECT_EQ(readable(*cache, 20), 20U);
  for (const auto& file : files())
    fs::remove(file);
  cache->keep(kState, 0, object_bytes(100));
  EXPECT_EQ(open_files_that_were_removed() - before, 20U);
  for (int reads = 0; reads < 5000; ++reads)
    EXPECT_EQ(readable(*cache, 1), 1U);
  EXPECT_EQ(open_files_that_were_removed() - before, 0U);
  EXPECT_EQ(readable(*cache, 20), 1U);
}

TEST_F(OpenDiskFiles, OpensTheSameFilesWithoutOpenat2) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(100));
  const fs::path file = files().at(0);
  const std::string name = file.filename();
  const auto directory = static_cast<unsigned>(std::stoul(file.parent_path().filename(), nullptr, 16));
  const int root = ::open(directory_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  ASSERT_GE(root, 0);
  for (const auto opens : {frame::open_block_file, frame::open_block_file_by_steps}) {
    EXPECT_TRUE(opens(root, directory, name).is_open());
    EXPECT_FALSE(opens(root, directory, std::string(32, '0')).is_open());
    fs::rename(file, temp_.path() / "moved");
    fs::create_symlink(temp_.path() / "moved", file);
    EXPECT_FALSE(opens(root, directory, name).is_open());
    EXPECT_EQ(errno, ELOOP);
    fs::remove(file);
    fs::rename(temp_.path() / "moved", file);
  }
  ::close(root);
}

}  // namespace
}  // namespace cframefs::test::open_disk_files_tests
