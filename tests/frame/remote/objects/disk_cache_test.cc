#include "frame/remote/objects/disk_cache.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <chrono>
#include <filesystem>
#include <thread>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "frame/base/xxh3.h"
#include "tests/frame/remote/objects/served_objects.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test::disk_cache_tests {
namespace {

namespace fs = std::filesystem;
using frame::DiskCache;

constexpr std::uint64_t kMiB = 1U << 20;
const std::string kState = "http://host/x\n1000\ntag \"a\"";

class DiskCacheTest : public ::testing::Test {
 protected:
  std::unique_ptr<DiskCache> open(std::uint64_t most = 64 * kMiB, unsigned free_percent = 0) {
    auto opened = DiskCache::open(directory_.string(), most, free_percent);
    EXPECT_TRUE(opened) << opened.error().reason;
    return opened ? std::move(*opened) : nullptr;
  }
  int refusal() const {
    const auto opened = DiskCache::open(directory_.string(), kMiB);
    return opened ? 0 : opened.error().sys;
  }
  /// All files in sub-directories.
  std::vector<fs::path> files() const {
    std::vector<fs::path> found;
    for (const auto& entry : fs::recursive_directory_iterator(directory_)) {
      if (!entry.is_directory() && entry.path().filename() != "budget") found.push_back(entry.path());
    }
    return found;
  }
  std::uint64_t bytes_on_disk() const {
    std::uint64_t sum = 0;
    for (const auto& file : files())
      sum += fs::file_size(file);
    return sum;
  }
  static void write_file(const fs::path& file, codec::ByteView bytes) {
    std::ofstream out(file, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
  }

  TempDir temp_;
  const fs::path directory_ = temp_.path() / "cache";
};

TEST_F(DiskCacheTest, MakesItsDirectoryForItsUserOnly) {
  open();
  struct stat status {};
  ASSERT_EQ(::stat(directory_.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 07777U, 0700U);
}

TEST_F(DiskCacheTest, FindsWhatItKeptAlsoFromAnotherProcess) {
  const auto one = open();
  const auto other = open();
  const auto bytes = object_bytes(1000);
  EXPECT_FALSE(one->find(kState, 3));
  one->keep(kState, 3, bytes);
  EXPECT_EQ(one->find(kState, 3), bytes);
  EXPECT_EQ(other->find(kState, 3), bytes);
  EXPECT_TRUE(other->may_have(kState, 3));
  EXPECT_EQ(open()->find(kState, 3), bytes);
  EXPECT_FALSE(one->find(kState, 2));
  EXPECT_FALSE(one->find(kState + "b", 3));
  EXPECT_FALSE(one->may_have(kState, 2));
}

TEST_F(DiskCacheTest, KeepsWholeBlocksAndNothingLonger) {
  const auto cache = open();
  const auto whole = object_bytes(kMiB);
  cache->keep(kState, 0, whole);
  EXPECT_EQ(cache->find(kState, 0), whole);
  cache->keep(kState, 1, object_bytes(kMiB + 1));
  EXPECT_FALSE(cache->find(kState, 1));
  cache->keep(kState, 2, {});
  EXPECT_FALSE(cache->find(kState, 2));
}

TEST_F(DiskCacheTest, AFileWithAnyWrongByteIsAMissAndIsRemoved) {
  const auto cache = open();
  const auto bytes = object_bytes(40);
  cache->keep(kState, 0, bytes);
  ASSERT_EQ(files().size(), 1U);
  const fs::path file = files()[0];
  const auto stored = file_bytes(file);
  for (std::size_t at = 0; at < stored.size(); ++at) {
    for (const unsigned flipped : {0x01U, 0x80U, 0xffU}) {
      auto damaged = stored;
      damaged[at] ^= static_cast<std::uint8_t>(flipped);
      write_file(file, damaged);
      ASSERT_FALSE(cache->find(kState, 0)) << "byte " << at;
      ASSERT_FALSE(fs::exists(file));
    }
  }
  write_file(file, stored);
  EXPECT_EQ(cache->find(kState, 0), bytes);
}

TEST_F(DiskCacheTest, ReadsAnyPartOfABlock) {
  const auto cache = open();
  const auto bytes = object_bytes(70'000);
  cache->keep(kState, 5, bytes);
  std::uint64_t checked = 0;
  for (std::uint64_t at = 0; at < bytes.size(); at += 4095) {
    for (const std::uint64_t size : {1U, 4096U, 16384U, 20000U, 40000U, 70000U}) {
      std::vector<std::uint8_t> into(std::min<std::uint64_t>(size, bytes.size() - at));
      ASSERT_TRUE(cache->read(kState, {5, bytes.size(), at}, into));
      ASSERT_TRUE(std::equal(into.begin(), into.end(), bytes.begin() + static_cast<std::ptrdiff_t>(at))) << at;
      ++checked;
    }
  }
  EXPECT_GT(checked, 100U);
  std::vector<std::uint8_t> into(10);
  EXPECT_FALSE(cache->read(kState, {5, 70'001, 0}, into)) << "another length";
  EXPECT_FALSE(cache->read(kState, {6, bytes.size(), 0}, into));
}

TEST_F(DiskCacheTest, AReadOfAPieceWithAnyWrongByteIsAMissAndTheFileIsRemoved) {
  const auto bytes = object_bytes(40'000);
  std::vector<std::uint8_t> into(100);
  for (const bool is_open : {false, true}) {
    for (std::size_t flipped = 0; flipped < bytes.size(); flipped += 997) {
      const auto cache = open();
      cache->keep(kState, 0, bytes);
      ASSERT_EQ(files().size(), 1U);
      const fs::path file = files()[0];
      if (is_open) {
        ASSERT_TRUE(cache->read(kState, {0, bytes.size(), flipped / 2}, into));
      }
      auto damaged = file_bytes(file);
      damaged[damaged.size() - bytes.size() + flipped] ^= 0x10U;
      write_file(file, damaged);
      const std::uint64_t at = std::min<std::uint64_t>(flipped, bytes.size() - into.size());
      ASSERT_FALSE(cache->read(kState, {0, bytes.size(), at}, into)) << flipped;
      ASSERT_FALSE(fs::exists(file));
      ASSERT_FALSE(cache->may_have(kState, 0));
      cache->keep(kState, 0, bytes);
      ASSERT_TRUE(cache->read(kState, {0, bytes.size(), at}, into)) << "it is kept again";
    }
  }
}

TEST_F(DiskCacheTest, AWrongByteInTheHeaderIsAMissOfEachPiece) {
  const auto bytes = object_bytes(20'000);
  open()->keep(kState, 0, bytes);
  const fs::path file = files().at(0);
  const auto stored = file_bytes(file);
  std::vector<std::uint8_t> into(10);
  for (std::size_t at = 0; at < stored.size() - bytes.size(); ++at) {
    auto damaged = stored;
    damaged[at] ^= 1U;
    write_file(file, damaged);
    ASSERT_FALSE(open()->read(kState, {0, bytes.size(), 0}, into)) << at;
    ASSERT_FALSE(fs::exists(file));
  }
}

TEST_F(DiskCacheTest, AFileOfTheFirstFormIsAMissAndIsRemoved) {
  const auto cache = open();
  const auto body = object_bytes(40);
  cache->keep(kState, 0, body);
  const fs::path file = files().at(0);
  auto old = file_bytes(file);
  old.erase(old.begin() + 80, old.end() - 40);
  old[8] = 1;
  codec::store_le(&old[64], frame::xxh3(body));
  codec::store_le(&old[72], frame::xxh3(codec::ByteView(old).first(72)));
  write_file(file, old);
  std::vector<std::uint8_t> into(10);
  EXPECT_FALSE(open()->read(kState, {0, 40, 0}, into));
  EXPECT_FALSE(fs::exists(file));
}

TEST_F(DiskCacheTest, AFileThatIsTooShortOrTooLongIsAMissAndIsRemoved) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(40));
  const fs::path file = files().at(0);
  const auto stored = file_bytes(file);
  for (std::size_t size = 0; size <= stored.size() + 1; ++size) {
    if (size == stored.size()) continue;
    auto torn = stored;
    torn.resize(size);
    write_file(file, torn);
    ASSERT_FALSE(cache->find(kState, 0)) << size;
    ASSERT_FALSE(fs::exists(file));
  }
  write_file(file, {});
  fs::resize_file(file, std::uint64_t{1} << 40);
  EXPECT_FALSE(cache->find(kState, 0));
}

TEST_F(DiskCacheTest, ABlockUnderTheNameOfAnotherIsAMiss) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(40));
  const fs::path first = files().at(0);
  const auto stored = file_bytes(first);
  fs::remove(first);
  cache->keep(kState, 1, object_bytes(40, 2));
  const fs::path second = files().at(0);
  write_file(second, stored);
  EXPECT_FALSE(cache->find(kState, 1));
}

TEST_F(DiskCacheTest, HoldsItsBoundAndKeepsWhatWasUsedLast) {
  const auto cache = open(20 * kMiB);
  for (std::uint64_t block = 0; block < 60; ++block) {
    cache->keep(kState, block, object_bytes(kMiB, block));
    ASSERT_LE(bytes_on_disk(), 20 * kMiB);
    ASSERT_TRUE(cache->find(kState, block)) << "the newest block was not kept";
  }
  EXPECT_GE(files().size(), 10U);
}

TEST_F(DiskCacheTest, TwoProcessesHoldOneBound) {
  const auto one = open(10 * kMiB);
  const auto other = open(10 * kMiB);
  for (std::uint64_t block = 0; block < 40; ++block) {
    (block % 2 == 0 ? one : other)->keep(kState, block, object_bytes(kMiB, block));
    ASSERT_LE(bytes_on_disk(), 10 * kMiB);
  }
  EXPECT_GE(files().size(), 5U);
}

/// Counts that say that each sub-directory holds more than any disk.
std::vector<std::uint8_t> forged_counts() {
  std::vector<std::uint8_t> bytes(8 + 16 * 256, 0x3f);
  const std::string magic = "cfbudget";
  std::copy(magic.begin(), magic.end(), bytes.begin());
  return bytes;
}

TEST_F(DiskCacheTest, HoldsItsBoundAfterTheCountsWereLostOrForged) {
  for (const bool is_forged : {false, true}) {
    open(30 * kMiB);
    {
      const auto cache = open(30 * kMiB);
      for (std::uint64_t block = 0; block < 25; ++block)
        cache->keep(kState, block, object_bytes(kMiB, block));
    }
    if (is_forged) {
      write_file(directory_ / "budget", forged_counts());
    } else {
      fs::remove(directory_ / "budget");
    }
    const auto cache = open(8 * kMiB);
    for (std::uint64_t block = 100; block < 180; ++block)
      cache->keep(kState, block, object_bytes(kMiB, block));
    EXPECT_LE(bytes_on_disk(), 8 * kMiB) << is_forged;
  }
}

TEST_F(DiskCacheTest, KeepsNothingThatExceedsTheBound) {
  const auto cache = open(1000);
  cache->keep(kState, 0, object_bytes(2000));
  EXPECT_FALSE(cache->find(kState, 0));
  EXPECT_TRUE(files().empty());
}

TEST_F(DiskCacheTest, LeavesAShareOfTheFilesystemFree) {
  const auto cache = open(64 * kMiB, 0);
  for (std::uint64_t block = 0; block < 4; ++block)
    cache->keep(kState, block, object_bytes(1000, block));
  const auto careful = open(64 * kMiB, 100);
  for (std::uint64_t block = 10; block < 20; ++block)
    careful->keep(kState, block, object_bytes(1000, block));
  EXPECT_TRUE(files().empty()) << "a full disk gets room, and no new file";
}

TEST_F(DiskCacheTest, RefusesADirectoryThatOthersMayWriteTo) {
  fs::create_directory(directory_);
  for (const mode_t mode : {0777U, 0770U, 0702U}) {
    ASSERT_EQ(::chmod(directory_.c_str(), mode), 0);
    EXPECT_EQ(refusal(), EACCES);
  }
  ASSERT_EQ(::chmod(directory_.c_str(), 0755), 0);
  EXPECT_EQ(refusal(), 0);
}

TEST_F(DiskCacheTest, RefusesTheDirectoryOfAnotherUser) {
  fs::create_directory(directory_);
  if (::geteuid() != 0) GTEST_SKIP() << "only root can give a directory away";
  ASSERT_EQ(::chown(directory_.c_str(), 12345, 12345), 0);
  const auto opened = DiskCache::open(directory_.string(), kMiB);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().sys, EACCES);
  EXPECT_NE(opened.error().reason.find("12345"), std::string::npos) << opened.error().reason;
}

TEST_F(DiskCacheTest, RefusesASymbolicLinkAsDirectoryAndWhatIsNone) {
  fs::create_directory(temp_.path() / "victim");
  fs::create_symlink(temp_.path() / "victim", directory_);
  EXPECT_EQ(refusal(), ENOTDIR);
  const auto slash = DiskCache::open(directory_.string() + "/", kMiB);
  EXPECT_FALSE(slash);
  fs::remove(directory_);
  std::ofstream(directory_).put('x');
  EXPECT_EQ(refusal(), ENOTDIR);
  const auto below = DiskCache::open((directory_ / "below" / "cache").string(), kMiB);
  ASSERT_FALSE(below);
  EXPECT_EQ(below.error().sys, ENOTDIR);
}

TEST_F(DiskCacheTest, MakesMissingDirectoriesAboveItForThisUserAlone) {
  ASSERT_TRUE(DiskCache::open((temp_.path() / "a" / "b" / "cache").string() + "/", kMiB));
  for (const char* const path : {"a", "a/b", "a/b/cache"})
    EXPECT_EQ(fs::status(temp_.path() / path).permissions(), fs::perms::owner_all) << path;
}

TEST_F(DiskCacheTest, FollowsNoSymbolicLinkInTheDirectory) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(100));
  const fs::path file = files().at(0);
  const auto stored = file_bytes(file);
  const fs::path victim = temp_.path() / "victim";
  write_file(victim, stored);
  // A link in place of the block, of its sub-directory and of the counts.
  fs::remove(file);
  fs::create_symlink(victim, file);
  EXPECT_FALSE(cache->find(kState, 0));
  EXPECT_FALSE(fs::is_symlink(fs::symlink_status(file)));
  cache->keep(kState, 0, object_bytes(100));
  EXPECT_EQ(file_bytes(victim), stored) << "written through the link";
  const fs::path other = temp_.path() / "other";
  fs::rename(file.parent_path(), other);
  fs::create_symlink(other, file.parent_path());
  EXPECT_FALSE(cache->find(kState, 0)) << "read through a link";
  fs::remove(other / file.filename());
  cache->keep(kState, 0, object_bytes(100));
  EXPECT_TRUE(fs::is_empty(other)) << "written through a link";
  fs::remove(directory_ / "budget");
  fs::create_symlink(victim, directory_ / "budget");
  open()->keep(kState, 1, object_bytes(100));
  EXPECT_EQ(file_bytes(victim), stored);
}

TEST_F(DiskCacheTest, APipeUnderTheNameOfABlockDoesNotStopAReader) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(100));
  const fs::path file = files().at(0);
  fs::remove(file);
  ASSERT_EQ(::mkfifo(file.c_str(), 0600), 0);
  EXPECT_FALSE(cache->find(kState, 0));
  cache->keep(kState, 0, object_bytes(100));
  EXPECT_TRUE(cache->find(kState, 0));
}

TEST_F(DiskCacheTest, RemovesFilesThatAKilledProcessLeft) {
  const auto cache = open(4000);
  for (std::uint64_t block = 0; block < 10; ++block)
    cache->keep(kState, block, object_bytes(1000, block));
  std::vector<fs::path> abandoned;
  for (unsigned directory = 0; directory < 256; ++directory) {
    const fs::path parent = directory_ / frame::directory_name(directory);
    fs::create_directory(parent);
    for (const char* name : {".new-00000000000000aa", ".new-00000000000000bb"})
      write_file(parent / name, object_bytes(10));
    abandoned.push_back(parent / ".new-00000000000000aa");
    fs::last_write_time(abandoned.back(), fs::file_time_type::clock::now() - std::chrono::hours(1));
  }
  fs::remove(directory_ / "budget");
  const auto next = open(64 * kMiB);
  for (std::uint64_t block = 100; block < 140; ++block)
    next->keep(kState, block, object_bytes(1000, block));
  for (const auto& file : abandoned) {
    EXPECT_FALSE(fs::exists(file)) << file;
    EXPECT_TRUE(fs::exists(file.parent_path() / ".new-00000000000000bb")) << "another process writes it";
  }
}

TEST_F(DiskCacheTest, AStoppedProcessThatHoldsTheLockStopsNoReader) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(100));
  const int holder = ::open((directory_ / "budget").c_str(), O_RDWR | O_CLOEXEC);
  ASSERT_GE(holder, 0);
  ASSERT_EQ(::flock(holder, LOCK_EX), 0);
  EXPECT_TRUE(cache->find(kState, 0));
  cache->keep(kState, 1, object_bytes(100));
  EXPECT_FALSE(cache->find(kState, 1));
  ::close(holder);
  cache->keep(kState, 1, object_bytes(100));
  EXPECT_TRUE(cache->find(kState, 1));
}

TEST_F(DiskCacheTest, ADirectoryThatWasRemovedOnlyMeansThatNothingIsKept) {
  const auto cache = open();
  cache->keep(kState, 0, object_bytes(100));
  fs::remove_all(directory_);
  EXPECT_FALSE(cache->find(kState, 0));
  cache->keep(kState, 0, object_bytes(100));
  EXPECT_FALSE(cache->find(kState, 0));
}

TEST_F(DiskCacheTest, ManyThreadsAndTwoCachesGetOnlyRightBytes) {
  const auto one = open(3 * kMiB);
  const auto other = open(3 * kMiB);
  std::atomic<unsigned> wrong{0};
  std::vector<std::thread> threads;
  for (unsigned id = 0; id < 4; ++id) {
    threads.emplace_back([&, id] {
      DiskCache& cache = id % 2 == 0 ? *one : *other;
      for (std::uint64_t step = 0; step < 60; ++step) {
        const std::uint64_t block = (step * 31 + id * 17) % 40;
        const auto bytes = object_bytes(100'000 + block, block);
        if (const auto found = cache.find(kState, block); found && *found != bytes) ++wrong;
        cache.keep(kState, block, bytes);
      }
    });
  }
  for (auto& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0U);
  EXPECT_LE(bytes_on_disk(), 3 * kMiB);
}

}  // namespace
}  // namespace cframefs::test::disk_cache_tests
