// What is on disk after fsync(2) has returned, and after commits that stop half-way. Without a mount.
#include <algorithm>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

using Event = FaultyDisk::Event;

class Durability : public WrittenFilesystem {
 protected:
  /// Returns whether the directory was synced after the last new name was created in it.
  static bool name_is_durable(const std::vector<Event>& events) {
    bool durable = false;
    for (const Event event : events)
      durable = event == Event::directory_synced || (durable && event != Event::named);
    return durable;
  }
};

// semantics: C2
TEST_F(Durability, FsyncOfANewEmptyFileMakesItsNameDurable) {
  auto handle = create("x");
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(name_is_durable(disk_.take_events()));
  filesystem_->files().release(std::move(handle));
}

TEST_F(Durability, FsyncOfAFrameThatIsReplacedForItsFirstDataMakesItsNameDurable) {
  auto handle = create("x");
  // Durable while it is empty: it must be so again when another file has replaced it.
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  disk_.take_events();
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  ASSERT_TRUE(write(*handle, 0, items));
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  const auto events = disk_.take_events();
  ASSERT_NE(std::find(events.begin(), events.end(), Event::named), events.end()) << "the frame was not replaced";
  EXPECT_TRUE(name_is_durable(events));
  filesystem_->files().release(std::move(handle));
}

TEST_F(Durability, AnErrorThatTheSourceReportsOnlyAtCloseIsReported) {
  directory_.write("plain.txt", {});
  ASSERT_TRUE(close(create("frame")));
  for (const char* name : {"plain.txt", "frame"}) {
    auto handle = open(name);
    ASSERT_TRUE(write(*handle, 0, "text"));
    disk_.flush_error = ENOSPC;
    EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), ENOSPC) << name;
    disk_.flush_error = 0;
    EXPECT_TRUE(filesystem_->files().flush(*handle)) << name;
    filesystem_->files().release(std::move(handle));
    // A program that has only read gets no error.
    disk_.flush_error = ENOSPC;
    EXPECT_TRUE(close(open(name, O_RDONLY))) << name;
    disk_.flush_error = 0;
  }
}

TEST_F(Durability, ACommitThatStopsAfterSomeOfManyPatchesLosesNothing) {
  options_.dirty_limit = 256 << 10;
  remount();
  constexpr std::size_t kChunk = 4096;
  constexpr std::size_t kChunks = 120;  // 16 of them are committed at a time
  for (int writes = 0; writes < 40; ++writes) {
    const std::string name = "x" + std::to_string(writes);
    auto handle = create(name);
    std::string expected(kChunks * kChunk, '\0');
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<char>('a' + i / 7 % 19);
    ASSERT_TRUE(write(*handle, 0, expected));
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      expected.replace(chunk * kChunk + 100, 4, "here");
      ASSERT_TRUE(write(*handle, chunk * kChunk + 100, "here"));
    }
    disk_.writes_left = writes;
    const bool done = filesystem_->files().sync(*handle, false).has_value();
    disk_.writes_left = -1;
    EXPECT_TRUE(read(*handle) == expected) << writes;
    // More patches over a frame that is neither all old nor all new.
    expected.replace(50 * kChunk + 102, 4, "more");
    ASSERT_TRUE(write(*handle, 50 * kChunk + 102, "more"));
    ASSERT_TRUE(filesystem_->files().sync(*handle, false)) << writes;
    EXPECT_TRUE(read(*handle) == expected) << writes;
    filesystem_->files().release(std::move(handle));
    remount();
    EXPECT_TRUE(content(name) == expected) << writes;
    if (done) return;
  }
  FAIL() << "the commit never succeeds";
}

TEST_F(Durability, ZerosBeforeTheDataDecideNothing) {
  directory_.write("x.b2frame", {});
  auto handle = open("x", O_RDWR);
  ASSERT_TRUE(handle);
  std::string items(3U << 20, '\0');
  for (int i = 0; i < 30'000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0, 0, 0, 0, 0};
  ASSERT_TRUE(write(*handle, 0, items));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(size_of("x"), items.size());
  handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  for (std::size_t at = 0; at < items.size(); at += 1 << 20)
    EXPECT_TRUE(read(*handle, at, 1 << 20) == items.substr(at, 1 << 20)) << at;
  EXPECT_TRUE(close(std::move(handle)));
  const auto frame = stored("x.b2frame");
  ASSERT_TRUE(frame);
  EXPECT_EQ(frame->parameters().typesize, 8);
}

/// A power cut leaves an empty file of one that was created, written and never synced.
// semantics: C20
TEST_F(Durability, AFileOfNoBytesIsAnEmptyFrameThatCanBeWritten) {
  for (const bool truncated : {false, true}) {
    directory_.write("x.b2frame", {});
    EXPECT_EQ(size_of("x"), 0U);
    EXPECT_EQ(content("x"), "");
    auto handle = open("x", truncated ? O_RDWR | O_TRUNC : O_RDWR);
    ASSERT_TRUE(handle);
    std::string items;
    for (int i = 0; i < 3000; ++i)
      items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
    ASSERT_TRUE(write(*handle, 0, items));
    EXPECT_EQ(read(*handle), items);
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    EXPECT_TRUE(close(std::move(handle)));
    EXPECT_EQ(content("x"), items);
    const auto frame = stored("x.b2frame");
    ASSERT_TRUE(frame);
    EXPECT_EQ(frame->parameters().typesize, 4) << "chosen as for a new frame";
    EXPECT_EQ(frame->parameters().chunksize, 4096);
    EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
  }
}

TEST_F(Durability, AFileOfNoBytesThatIsNotNamedLikeAFrameStaysPlain) {
  options_.detect = Detect::content;
  directory_.write("plain", {});
  directory_.write("x.b2frame", {});
  remount();
  for (const char* name : {"plain", "x"}) {
    auto handle = open(name);
    ASSERT_TRUE(write(*handle, 0, "text"));
    EXPECT_TRUE(close(std::move(handle)));
  }
  EXPECT_EQ(test::file_bytes(directory_.path() / "plain").size(), 4U);
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 4U);
}

}  // namespace
}  // namespace cframefs::fs
