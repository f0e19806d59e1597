// A disk that is full: what programs cut off, punch or have written over makes room, and what is promised must be
// there.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <random>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kDiskBlock = 4096;

/// A disk with a given number of blocks left. A write into blocks that a file already has takes none.
class FullDisk final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    if (room <= 0) return codec::io_error(ENOSPC, "create");
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    const std::uint64_t before = size_of(file);
    const std::uint64_t after = std::max(before, at.value + from.size());
    if (!take(disk_blocks(after) - disk_blocks(before))) return codec::io_error(ENOSPC, "pwrite");
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<void> truncate(frame::OpenFile file, std::uint64_t size) override {
    const std::uint64_t before = size_of(file);
    if (size < before) room += static_cast<std::int64_t>(disk_blocks(before) - disk_blocks(size));
    return ForwardingFiles::truncate(file, size);
  }
  codec::Result<void> allocate(frame::OpenFile file, int mode, frame::FileOffset at, std::uint64_t length) override {
    if ((mode & FALLOC_FL_PUNCH_HOLE) != 0) {
      if (no_holes) return codec::io_error(EOPNOTSUPP, "fallocate");
      EXPECT_EQ(at.value % kDiskBlock, 0U);
      EXPECT_EQ(length % kDiskBlock, 0U);
      room += static_cast<std::int64_t>(length / block);
      punched += length;
    }
    return ForwardingFiles::allocate(file, mode, at, length);
  }
  codec::Result<struct statvfs> filesystem_status(frame::OpenFile file) override {
    auto status = ForwardingFiles::filesystem_status(file);
    if (status) {
      status->f_frsize = block;
      status->f_bavail = status->f_bfree = static_cast<fsblkcnt_t>(std::max<std::int64_t>(room, 0));
    }
    return status;
  }
  std::atomic<std::int64_t> room{1'000'000};
  std::atomic<std::uint64_t> punched{0};
  std::atomic<bool> no_holes{false};
  std::atomic<std::uint64_t> block{kDiskBlock};

 private:
  std::uint64_t disk_blocks(std::uint64_t bytes) const { return (bytes + block - 1) / block; }
  bool take(std::uint64_t count) {
    if (count == 0) return true;
    if (room < static_cast<std::int64_t>(count)) return false;
    room -= static_cast<std::int64_t>(count);
    return true;
  }
  static std::uint64_t size_of(frame::OpenFile file) {
    struct stat status {};
    return ::fstat(file.value, &status) == 0 ? static_cast<std::uint64_t>(status.st_size) : 0;
  }
};

class FullDiskTest : public WrittenFilesystem {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.new_frames.chunksize = 64 << 10;
    options_.commit_interval = 1000;
    filesystem_ = std::make_unique<Filesystem>(full_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  void TearDown() override {
    full_.room = 1'000'000;
    stop();
  }
  /// Bytes that do not compress.
  static std::string random_text(std::size_t length, unsigned seed) {
    std::mt19937 random(seed);
    std::string text(length, '\0');
    std::generate(text.begin(), text.end(), [&random] { return static_cast<char>(random()); });
    return text;
  }
  /// 20 chunks, on disk.
  std::unique_ptr<FileHandle> filled() {
    auto handle = create("x");
    text_ = random_text(20 * (64 << 10), 1);
    EXPECT_TRUE(write(*handle, 0, text_));
    EXPECT_TRUE(filesystem_->files().sync(*handle, false));
    return handle;
  }
  /// What another program reads, straight from the disk.
  std::string stored_text() {
    const auto container = stored("x.b2frame");
    std::string text;
    for (std::int64_t i = 0; container && i < container->chunk_count(); ++i) {
      const auto chunk = test::read_chunk(*container, i);
      EXPECT_TRUE(chunk);
      if (chunk) text.append(chunk->begin(), chunk->end());
    }
    return text;
  }

  FullDisk full_;
  std::string text_;
};

// semantics: C16
TEST_F(FullDiskTest, AFileThatIsCutToNothingGivesBackAllThatItTook) {
  auto handle = filled();
  auto reader = open("x", O_RDONLY);
  EXPECT_EQ(read(*reader, 0, 2 << 20), text_);
  full_.room = 0;
  ASSERT_TRUE(resize(*handle, 0));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_GE(full_.room, 320);
  EXPECT_EQ(read(*reader), "");
  EXPECT_EQ(stored_text(), "");
  ASSERT_TRUE(write(*handle, 0, "again"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(stored_text(), "again");
  EXPECT_EQ(read(*reader), "again");
  filesystem_->files().release(std::move(reader));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "again");
}

// semantics: C14
TEST_F(FullDiskTest, WhatIsCutOffOrPunchedMakesRoom) {
  for (const bool punch : {false, true}) {
    full_.room = 1'000'000;
    auto handle = filled();
    full_.room = 0;
    if (punch) {
      ASSERT_TRUE(
          filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, text_.size() / 2));
      std::fill_n(text_.begin(), text_.size() / 2, '\0');
    } else {
      ASSERT_TRUE(resize(*handle, text_.size() / 2));
      text_.resize(text_.size() / 2);
    }
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    EXPECT_GE(full_.room, 150) << punch;
    EXPECT_EQ(read(*handle, 0, 2 << 20), text_);
    EXPECT_EQ(stored_text(), text_);
    EXPECT_TRUE(close(std::move(handle)));
  }
}

// semantics: C14
TEST_F(FullDiskTest, EachCommitLeavesRoomForTheIndexOfTheNextWhereverTheFrameEnds) {
  for (std::size_t more = 0; more < kDiskBlock; more += 251) {
    full_.room = 1'000'000;
    auto handle = filled();
    ASSERT_TRUE(write(*handle, text_.size(), random_text(more + 1, 2)));
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    full_.room = 0;
    ASSERT_TRUE(resize(*handle, text_.size() / 2));
    text_.resize(text_.size() / 2);
    ASSERT_TRUE(filesystem_->files().sync(*handle, false)) << more;
    EXPECT_EQ(stored_text(), text_);
    full_.room = 1'000'000;
    EXPECT_TRUE(close(std::move(handle)));
    ASSERT_TRUE(filesystem_->names().remove(kRootNode, "x", false));
  }
}

// semantics: C15, C17
TEST_F(FullDiskTest, WhatIsDeadAlreadyMakesRoomForTheNextCommit) {
  auto handle = filled();
  const std::string other = random_text(5 * (64 << 10), 2);
  ASSERT_TRUE(write(*handle, 0, other));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  text_.replace(0, other.size(), other);
  EXPECT_EQ(full_.punched, 0U) << "there is room to write the whole frame again";
  full_.room = 0;
  // As much as the first has left behind.
  const std::string third = random_text(4 * (64 << 10), 3);
  ASSERT_TRUE(write(*handle, 6 * (64 << 10), third));
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  text_.replace(6 * (64 << 10), third.size(), third);
  EXPECT_GT(full_.punched, 0U);
  EXPECT_EQ(read(*handle, 0, 2 << 20), text_);
  EXPECT_EQ(stored_text(), text_);
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: C17
TEST_F(FullDiskTest, NoBytesAreTakenFromAProgramThatShowsByALockThatItReads) {
  auto handle = filled();
  const int fd = ::open((directory_.path() / "x.b2frame").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::flock(fd, LOCK_SH), 0);
  full_.room = 1;  // for the file that keeps other writers out
  ASSERT_TRUE(resize(*handle, text_.size() / 2));
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(full_.punched, 0U);
  ::close(fd);
  full_.room = 1'000'000;
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: C18
TEST_F(FullDiskTest, AnOldStateThatIsReadWithoutALockHasZerosInThePlaceOfDeadChunks) {
  auto handle = filled();
  const auto before = test::file_bytes(directory_.path() / "x.b2frame");
  const std::string chunk = text_.substr(15 * (64 << 10), 64 << 10);
  const auto place = std::search(before.begin(), before.end(), chunk.begin(), chunk.end(),
                                 [](auto byte, char wanted) { return byte == static_cast<std::uint8_t>(wanted); }) -
                     before.begin();
  ASSERT_LT(static_cast<std::size_t>(place) + chunk.size(), before.size()) << "the chunk is not stored as it is";
  full_.room = 0;
  ASSERT_TRUE(resize(*handle, text_.size() / 2));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  auto after = test::file_bytes(directory_.path() / "x.b2frame");
  after.resize(before.size());
  // All blocks of the disk that hold nothing else.
  EXPECT_TRUE(std::all_of(after.begin() + place + kDiskBlock, after.begin() + place + (64 << 10) - kDiskBlock,
                          [](auto byte) { return byte == 0; }));
  full_.room = 1'000'000;
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: C19
TEST_F(FullDiskTest, ATruncationWithoutRoomForItsIndexWaits) {
  const auto path = directory_.path() / "x.b2frame";
  std::string text = random_text(20 * (64 << 10), 1);
  auto handle = create("x");
  // In the last block of 4096 bytes is room for an index, but not in one of this disk.
  full_.block = 512;
  for (;; text.pop_back()) {
    ASSERT_TRUE(resize(*handle, 0));
    ASSERT_TRUE(write(*handle, 0, text));
    ASSERT_TRUE(close(std::move(handle)));
    handle = open("x");
    const auto used = std::filesystem::file_size(path) % full_.block;
    if (used == 0 || used > full_.block - 16) break;
    text.resize(text.size() - used + 1);
  }
  full_.room = 0;
  ASSERT_TRUE(resize(*handle, text.size() / 2));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ENOSPC);
  EXPECT_EQ(read(*handle, 0, 2 << 20), text.substr(0, text.size() / 2));
  full_.room = 1'000'000;
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(stored_text(), text.substr(0, text.size() / 2));
}

// semantics: C19
TEST_F(FullDiskTest, DeadChunksStayOnAFilesystemWithoutHoles) {
  auto handle = filled();
  full_.no_holes = true;
  ASSERT_TRUE(write(*handle, 0, random_text(64 << 10, 2)));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  full_.room = 0;
  ASSERT_TRUE(write(*handle, 0, random_text(64 << 10, 3)));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ENOSPC);
  EXPECT_EQ(full_.punched, 0U);
  full_.room = 1'000'000;
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: W10
TEST_F(FullDiskTest, NoMoreIsPromisedThanThereIs) {
  auto handle = filled();
  full_.room = 100;
  const std::uint64_t size = text_.size();
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, 0, 0, size + 101 * kDiskBlock)), ENOSPC);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, FALLOC_FL_KEEP_SIZE, size, 101 * kDiskBlock)), ENOSPC);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, 0, 0, ~std::uint64_t{0})), ENOSPC);
  EXPECT_EQ(size_of("x"), size);
  // What the file has already takes no more; neither do holes.
  EXPECT_TRUE(filesystem_->files().allocate(*handle, 0, 0, size));
  EXPECT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, 0, ~std::uint64_t{0}));
  EXPECT_TRUE(filesystem_->files().allocate(*handle, 0, 0, size + 100 * kDiskBlock));
  EXPECT_EQ(size_of("x"), size + 100 * kDiskBlock);
  full_.room = 1'000'000;
  EXPECT_TRUE(close(std::move(handle)));
}

}  // namespace
}  // namespace cframefs::fs
