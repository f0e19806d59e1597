// Changes of files behind the filesystem's back, told from one another by what stat(2) says. Without a mount.
#include <atomic>
#include <cerrno>
#include <ctime>
#include <filesystem>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "fs/filesystem.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"

namespace cframefs::fs {
namespace {

using test::Bytes;

/// A system whose files are stamped by the second, as some filesystems do it: slow enough for two changes within one
/// tick on any machine.
class SlowClockFiles final : public test::ForwardingFiles {
 public:
  codec::Result<struct stat> status(frame::OpenFile file) override { return ticked(ForwardingFiles::status(file)); }
  codec::Result<struct stat> status_at(frame::OpenFile dir, const std::string& path) override {
    return ticked(ForwardingFiles::status_at(dir, path));
  }

 private:
  static codec::Result<struct stat> ticked(codec::Result<struct stat> status) {
    if (status) {
      status->st_mtim.tv_nsec = 0;
      status->st_ctim.tv_nsec = 0;
    }
    return status;
  }
};

/// A system in which a file is removed between the look at it and the opening.
class VanishingFiles final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if (path == "x.b2frame") return codec::io_error(ENOENT, "open");
    return ForwardingFiles::open_at(dir, path, flags);
  }
};

/// A system without a free descriptor for directories.
class FullTable final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> open_at(frame::OpenFile dir, const std::string& path, int flags) override {
    if (path == "x.b2frame" && (flags & O_DIRECTORY) != 0) return codec::io_error(EMFILE, "open");
    return ForwardingFiles::open_at(dir, path, flags);
  }
};

/// Counts what the kernel is told to drop.
class DropCountingKernel final : public KernelInvalidator {
 public:
  void invalidate_inode(NodeId /*node*/) override { ++files; }
  void invalidate_entry(NodeId /*parent*/, const std::string& /*name*/) override {}
  std::atomic<int> files{0};
};

/// Bytes of raw blocks: unlike plain chunks their decoded cells are kept.
Bytes frame_of(std::uint8_t value) {
  constexpr std::int32_t kSize = 256 << 10;
  const Bytes plain(kSize, value);
  const Bytes chunk = test::raw_block_chunk(plain, 64 << 10);
  test::FrameBuilder frame;
  frame.chunksize = kSize;
  frame.nbytes = kSize;
  frame.chunk_section = chunk;
  frame.index = test::plain_index({0});
  return frame.build();
}

void overwrite(const std::string& path, const Bytes& bytes) {
  const int fd = ::open(path.c_str(), O_WRONLY | O_CREAT, 0644);
  ASSERT_GE(fd, 0);
  ASSERT_EQ(::pwrite(fd, bytes.data(), bytes.size(), 0), static_cast<ssize_t>(bytes.size()));
  ::close(fd);
}

std::int64_t tick() {
  struct timespec now {};
  clock_gettime(CLOCK_REALTIME, &now);
  return now.tv_sec;
}

/// Until a file that was changed before the call is not racy any more.
void let_settle() {
  const std::int64_t end = tick() + 4;
  while (tick() < end)
    ::usleep(10'000);
}

class FilesystemChanges : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  void TearDown() override { filesystem_->stop(); }

  std::unique_ptr<FileHandle> open() {
    auto found = filesystem_->names().lookup(kRootNode, "x");
    EXPECT_TRUE(found);
    auto handle = filesystem_->files().open(found->node);
    EXPECT_TRUE(handle);
    return std::move(*handle);
  }
  int read(FileHandle& handle) {
    Reply reply;
    EXPECT_TRUE(filesystem_->files().read(handle, 70'000, 1000, reply));
    Bytes bytes(reply.size());
    reply.copy_to(bytes.data());
    return bytes.empty() ? -1 : bytes.front();
  }

  test::TempDir directory_;
  SlowClockFiles files_;
  DropCountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

TEST_F(FilesystemChanges, ASecondChangeWithinOneTickOfTheClockIsSeen) {
  const std::string path = directory_.path() / "x.b2frame";
  std::unique_ptr<FileHandle> early;
  // Both changes within one tick: tried until they were.
  std::int64_t begun = -1;
  for (int tries = 0; begun != tick(); ++tries) {
    ASSERT_LT(tries, 100);
    begun = tick();
    overwrite(path, frame_of('1'));
    early = open();
    ASSERT_EQ(read(*early), '1');
    overwrite(path, frame_of('2'));
  }
  let_settle();
  const int before = kernel_.files;
  const auto late = open();
  EXPECT_TRUE(!late->keep_pages || kernel_.files > before);
  EXPECT_EQ(read(*late), '2');
  EXPECT_EQ(read(*early), '2');
}

TEST(FilesystemRaces, AFrameThatIsRemovedWhileItIsLookedAtIsMissingAndNotDamaged) {
  const test::TempDir directory;
  overwrite(directory.path() / "x.b2frame", frame_of('1'));
  VanishingFiles files;
  MountOptions options;
  options.source = directory.path();
  Filesystem filesystem(files, options);
  ASSERT_TRUE(filesystem.open_source(false));
  const auto found = filesystem.names().lookup(kRootNode, "x");
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().sys, ENOENT);
}

TEST(FilesystemLookup, WithoutADescriptorASparseFrameIsNotTakenForADirectory) {
  const test::TempDir directory;
  std::filesystem::create_directory(directory.path() / "x.b2frame");
  for (const auto& [name, bytes] : test::sparse_frame(Bytes(100, 1), 50))
    directory.write("x.b2frame/" + name, bytes);
  FullTable files;
  MountOptions options;
  options.source = directory.path();
  Filesystem filesystem(files, options);
  ASSERT_TRUE(filesystem.open_source(false));
  // Under its own name it would be found as a directory.
  for (const char* name : {"x", "x.b2frame"}) {
    const auto found = filesystem.names().lookup(kRootNode, name);
    ASSERT_FALSE(found) << name;
    EXPECT_EQ(found.error().sys, EMFILE) << name;
  }
}

TEST_F(FilesystemChanges, WhatHasSettledIsKept) {
  overwrite(directory_.path() / "x.b2frame", frame_of('1'));
  let_settle();
  const auto first = open();
  EXPECT_EQ(read(*first), '1');
  const auto second = open();
  EXPECT_TRUE(second->keep_pages);
}

}  // namespace
}  // namespace cframefs::fs
