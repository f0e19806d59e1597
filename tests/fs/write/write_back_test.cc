// Frames written through the filesystem object: what is read before, during and after a commit, and what remains when
// the disk fails or another process interferes.
#include <cerrno>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

using WriteBackTest = WrittenFilesystem;

std::string pattern(std::size_t length, unsigned seed = 1) {
  std::string text(length, '\0');
  for (std::size_t i = 0; i < length; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 251 * seed) % 26);
  return text;
}

TEST_F(WriteBackTest, ANewFileIsAValidEmptyFrameAtOnce) {
  auto handle = create("x");
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 0U);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "");
}

TEST_F(WriteBackTest, WrittenBytesAreReadBeforeAndAfterTheCommit) {
  const std::string text = pattern(30'000);
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, text));
  EXPECT_EQ(read(*handle), text);
  EXPECT_EQ(size_of("x"), text.size());
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 0U);
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, text.size());
  ASSERT_TRUE(write(*handle, 5000, "over the edge of nothing"));
  std::string expected = text;
  expected.replace(5000, 24, "over the edge of nothing");
  EXPECT_EQ(read(*handle), expected);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), expected);
  remount();
  EXPECT_EQ(content("x"), expected);
}

TEST_F(WriteBackTest, GapsShrinkingAndGrowingReadAsZeros) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 20'000, "end"));
  std::string expected = std::string(20'000, '\0') + "end";
  EXPECT_EQ(read(*handle), expected);
  ASSERT_TRUE(filesystem_->files().sync(*handle, true));
  // Truncated inside a chunk, then extended, within one commit: the removed bytes must not reappear.
  ASSERT_TRUE(write(*handle, 0, pattern(9000)));
  ASSERT_TRUE(filesystem_->files().sync(*handle, true));
  ASSERT_TRUE(resize(*handle, 5000));
  ASSERT_TRUE(resize(*handle, 10'000));
  expected = pattern(9000).substr(0, 5000) + std::string(5000, '\0');
  EXPECT_EQ(read(*handle), expected);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), expected);
}

// semantics: W5, W9
TEST_F(WriteBackTest, PunchedChunksAreHolesOnDisk) {
  const std::string text = pattern(5 * 4096);
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, text));
  ASSERT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 4000, 5000));
  std::string expected = text;
  std::fill_n(expected.begin() + 4000, 5000, '\0');
  EXPECT_EQ(read(*handle), expected);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, FALLOC_FL_COLLAPSE_RANGE, 0, 4096)), EOPNOTSUPP);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), expected);
  EXPECT_EQ(stored("x.b2frame")->locate_chunk(frame::ChunkNumber{1})->special, codec::SpecialValue::zeros);
  EXPECT_EQ(stored("x.b2frame")->locate_chunk(frame::ChunkNumber{2})->special, codec::SpecialValue::none);
}

TEST_F(WriteBackTest, ALastChunkOfZerosThatIsNoWholeNumberOfItemsIsStored) {
  options_.new_frames.typesize = 4;
  remount();
  for (const bool punched : {false, true}) {
    auto handle = create("x", O_RDWR | O_TRUNC);
    if (punched) {
      ASSERT_TRUE(write(*handle, 0, pattern(2 * 4096 + 1001)));
      ASSERT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_ZERO_RANGE, 2 * 4096, 1001));
    } else {
      ASSERT_TRUE(write(*handle, 0, pattern(10)));
      ASSERT_TRUE(resize(*handle, 2 * 4096 + 1001));
    }
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(stored("x.b2frame")->locate_chunk(frame::ChunkNumber{2})->special, codec::SpecialValue::none);
    EXPECT_EQ(content("x").substr(2 * 4096), std::string(1001, '\0'));
  }
}

// semantics: W3
TEST_F(WriteBackTest, AppendsGoToTheEndWhereverTheKernelTakesItToBe) {
  auto first = create("x", O_RDWR | O_APPEND);
  auto second = open("x", O_WRONLY | O_APPEND);
  ASSERT_TRUE(write(*first, 0, "one "));
  ASSERT_TRUE(write(*second, 0, "two "));
  ASSERT_TRUE(write(*first, 4, "three"));
  EXPECT_EQ(read(*first), "one two three");
  EXPECT_TRUE(close(std::move(first)));
  EXPECT_TRUE(close(std::move(second)));
  EXPECT_EQ(content("x"), "one two three");
}

// semantics: C4, C10
TEST_F(WriteBackTest, AFullDiskLeavesTheOldStateAndARetrySucceeds) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, "old"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, pattern(20'000)));
  disk_.write_error = ENOSPC;
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ENOSPC);
  EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), ENOSPC);
  EXPECT_EQ(read(*handle), pattern(20'000));
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 3U);
  // Written while commits fail: over data that are to be retried.
  ASSERT_TRUE(write(*handle, 100, "later"));
  disk_.write_error = 0;
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(close(std::move(handle)));
  std::string expected = pattern(20'000);
  expected.replace(100, 5, "later");
  EXPECT_EQ(content("x"), expected);
}

// semantics: C4
TEST_F(WriteBackTest, DataThatCouldNotBeCommittedAtTheLastCloseAreReadAndRetried) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, "old"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, pattern(20'000)));
  disk_.write_error = EIO;
  EXPECT_EQ(errno_of(close(std::move(handle))), EIO);
  EXPECT_TRUE(content("x") == pattern(20'000));
  EXPECT_EQ(size_of("x"), 20'000U);
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 3U);
  disk_.write_error = 0;
  // The next program that opens and closes the file need not wait for the next attempt.
  ASSERT_TRUE(close(open("x")));
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 20'000U);
  EXPECT_TRUE(content("x") == pattern(20'000));
}

// semantics: C11
TEST_F(WriteBackTest, AfterASyncThatFailedEveryFsyncFailsUntilTheFileIsReopened) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, "old"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  ASSERT_TRUE(write(*handle, 0, "new"));
  disk_.sync_error = EIO;
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), EIO);
  disk_.sync_error = 0;
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), EIO);
  static_cast<void>(close(std::move(handle)));
  handle = open("x");
  ASSERT_TRUE(write(*handle, 0, "again"));
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "again");
}

// Any sync may fail once: the program that closed gets the error, and the next one can write and sync.
TEST_F(WriteBackTest, ASyncThatFailedOnceIsOverForTheNextProgram) {
  const std::string base = pattern(50'000);
  for (const bool changes_size : {false, true}) {
    for (int failing = 0; failing < 6; ++failing) {
      SCOPED_TRACE(std::to_string(failing) + (changes_size ? ", cut" : ""));
      const std::string name = "x" + std::to_string(failing) + (changes_size ? "cut" : "");
      auto handle = create(name);
      ASSERT_TRUE(write(*handle, 0, base));
      ASSERT_TRUE(filesystem_->files().sync(*handle, false));
      if (changes_size) {
        ASSERT_TRUE(resize(*handle, 0));
      }
      ASSERT_TRUE(write(*handle, 20'000, "new"));
      disk_.syncs_left = failing;
      const bool synced = filesystem_->files().sync(*handle, false).has_value();
      const bool closed = close(std::move(handle)).has_value();
      const bool reached = disk_.syncs_left < 0;
      disk_.syncs_left = -1;
      EXPECT_EQ(synced && closed, !reached);
      const std::string seen = content(name);
      handle = open(name);
      ASSERT_TRUE(handle);
      ASSERT_TRUE(write(*handle, 0, "again"));
      const auto again = filesystem_->files().sync(*handle, false);
      EXPECT_TRUE(again) << again.error().reason;
      EXPECT_TRUE(close(std::move(handle)));
      remount();
      EXPECT_TRUE(content(name) == "again" + seen.substr(5));
    }
  }
}

// semantics: C2, C20
TEST_F(WriteBackTest, FsyncReachesTheDiskAndCloseOfANewFileNeedNot) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, "text"));
  const int before = disk_.syncs;
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  EXPECT_EQ(disk_.syncs, before);
  ASSERT_TRUE(filesystem_->files().sync(*handle, true));
  EXPECT_GT(disk_.syncs, before);
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(WriteBackTest, AChangeByAnotherProgramUnderDirtyDataIsStaleAndStays) {
  for (const char* name : {"x", "other"}) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, pattern(10'000, name[0])));
    ASSERT_TRUE(close(std::move(handle)));
  }
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 0, "mine"));
  const auto other = test::file_bytes(directory_.path() / "other.b2frame");
  directory_.write("x.b2frame", other);
  EXPECT_EQ(errno_of(write(*handle, 0, "mine")), ESTALE);
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ESTALE);
  EXPECT_EQ(errno_of(close(std::move(handle))), ESTALE);
  EXPECT_EQ(test::file_bytes(directory_.path() / "x.b2frame"), other);
  EXPECT_EQ(content("x"), pattern(10'000, 'o'));
}

// semantics: C8
TEST_F(WriteBackTest, AProgramThatOpensAStaleFrameSeesTheOtherProgramsChange) {
  for (const char* name : {"x", "other"}) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, pattern(name[0] == 'x' ? 9'000 : 10'000, name[0])));
    ASSERT_TRUE(close(std::move(handle)));
  }
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 0, "mine"));
  directory_.write("x.b2frame", test::file_bytes(directory_.path() / "other.b2frame"));
  // Neither the old version with bytes of the new one, nor the old size.
  Reply reply;
  EXPECT_EQ(errno_of(filesystem_->files().read(*handle, 5'000, 4'096, reply)), ESTALE);
  EXPECT_EQ(content("x"), pattern(10'000, 'o'));
  auto next = open("x");
  ASSERT_TRUE(write(*next, 0, "next"));
  EXPECT_EQ(errno_of(close(std::move(handle))), ESTALE);
  ASSERT_TRUE(close(std::move(next)));
  EXPECT_EQ(content("x"), "next" + pattern(10'000, 'o').substr(4));
  remount();
  EXPECT_EQ(content("x"), "next" + pattern(10'000, 'o').substr(4));
}

// semantics: C1
TEST_F(WriteBackTest, TheDirtyLimitHoldsAndTheIntervalCommits) {
  options_.dirty_limit = 1 << 20;
  options_.commit_interval = 0.01;
  remount();
  auto handle = create("x");
  std::string expected;
  for (int i = 0; i < 400; ++i) {
    const std::string piece = pattern(10'000, static_cast<unsigned>(i));
    ASSERT_TRUE(write(*handle, expected.size(), piece));
    expected += piece;
  }
  EXPECT_GT(stored("x.b2frame")->parameters().nbytes, expected.size() - (1 << 20));
  // The data reach the disk without a close.
  for (int i = 0; i < 3000 && stored("x.b2frame")->parameters().nbytes != expected.size(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, expected.size());
  EXPECT_EQ(read(*handle, 0, expected.size()), expected);
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: W4
TEST_F(WriteBackTest, ReadersBesideAWriterSeeWholeWrites) {
  options_.commit_interval = 0.01;
  remount();
  auto handle = create("x");
  const auto text = [](int version) { return std::string(3 * 4096 + 77, static_cast<char>('a' + version % 26)); };
  ASSERT_TRUE(write(*handle, 0, text(0)));
  std::atomic<bool> done{false};
  std::vector<std::thread> readers;
  std::atomic<int> mixed{0};
  for (int i = 0; i < 2; ++i) {
    readers.emplace_back([&] {
      auto own = open("x", O_RDONLY);
      while (!done) {
        const std::string seen = read(*own);
        mixed += seen.size() != text(0).size() || seen.find_first_not_of(seen[0]) != std::string::npos ? 1 : 0;
      }
      filesystem_->files().release(std::move(own));
    });
  }
  for (int version = 1; version < 300; ++version) {
    ASSERT_TRUE(write(*handle, 0, text(version)));
    if (version % 10 == 0) {
      ASSERT_TRUE(filesystem_->files().flush(*handle));
    }
  }
  done = true;
  for (auto& reader : readers)
    reader.join();
  EXPECT_EQ(mixed, 0);
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(WriteBackTest, ALongRowOfSmallCommitsLeavesAFileOfReasonableSize) {
  for (const bool reopened : {false, true}) {
    auto handle = create("x", O_RDWR | O_TRUNC);
    std::string expected;
    for (int i = 0; i < 300; ++i) {
      const std::string record = pattern(100, static_cast<unsigned>(i));
      ASSERT_TRUE(write(*handle, expected.size(), record));
      expected += record;
      if (reopened) {
        ASSERT_TRUE(close(std::move(handle)));
        handle = open("x");
      } else {
        ASSERT_TRUE(filesystem_->files().flush(*handle));
      }
    }
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content("x"), expected);
    auto packed = create("packed", O_RDWR | O_TRUNC);
    ASSERT_TRUE(write(*packed, 0, expected));
    EXPECT_TRUE(close(std::move(packed)));
    EXPECT_LE(std::filesystem::file_size(directory_.path() / "x.b2frame"),
              2 * std::filesystem::file_size(directory_.path() / "packed.b2frame") + 8192);
  }
}

}  // namespace
}  // namespace cframefs::fs
