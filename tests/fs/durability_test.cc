// What is on disk when fsync(2) has answered, and after commits that stop half-way. Without a mount.
#include <cerrno>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "codec/mutex.h"
#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

/// Remembers renames and syncs in their order, and lets so many more writes succeed.
class WatchedDisk final : public test::ForwardingFiles {
 public:
  enum class Event : std::uint8_t { named, folder_synced, file_synced };

  codec::Result<void> rename_at(int from_dir, const std::string& from, int to_dir, const std::string& to,
                                unsigned flags) override {
    note(Event::named);
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  codec::Result<void> sync(int fd, bool data_only) override {
    struct stat status {};
    ::fstat(fd, &status);
    note(S_ISDIR(status.st_mode) ? Event::folder_synced : Event::file_synced);
    return ForwardingFiles::sync(fd, data_only);
  }
  codec::Result<void> pwrite(int fd, codec::ByteView from, frame::FileOffset at) override {
    if (writes_left == 0) return codec::io_error(ENOSPC, "pwrite");
    if (writes_left > 0) --writes_left;
    return ForwardingFiles::pwrite(fd, from, at);
  }
  std::vector<Event> take_events() {
    codec::MutexLock lock(mutex_);
    return std::exchange(events_, {});
  }
  std::atomic<int> writes_left{-1};  // negative: all

 private:
  void note(Event event) {
    codec::MutexLock lock(mutex_);
    events_.push_back(event);
  }
  codec::Mutex mutex_;
  std::vector<Event> events_ GUARDED_BY(mutex_);
};

using Event = WatchedDisk::Event;

class Durability : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = folder_.path();
    options_.chunksize = 4096;
    options_.commit_interval = 1000;
    options_.dirty_limit = 256 << 10;
    start();
  }
  void TearDown() override { filesystem_->stop(); }
  void start() {
    filesystem_ = std::make_unique<Filesystem>(disk_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  std::unique_ptr<FileHandle> create(const std::string& name) {
    auto created = filesystem_->create(kRootNode, name, O_RDWR | O_CREAT, 0644, {});
    EXPECT_TRUE(created) << created.error().reason;
    return created ? std::move(created->handle) : nullptr;
  }
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, const std::string& text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return filesystem_->write(handle, at, bytes, false);
  }
  std::string read(FileHandle& handle, std::size_t length) {
    Reply reply;
    auto done = filesystem_->read(handle, 0, length, reply);
    EXPECT_TRUE(done) << done.error().reason;
    std::vector<std::uint8_t> bytes(reply.size());
    reply.copy_to(bytes.data());
    return {bytes.begin(), bytes.end()};
  }
  /// Since the last call: whether the folder was synced after the last new name was given in it.
  bool name_is_durable() {
    bool durable = false;
    for (const Event event : disk_.take_events())
      durable = event == Event::folder_synced || (durable && event != Event::named);
    return durable;
  }

  test::TempDir folder_;
  WatchedDisk disk_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

TEST_F(Durability, FsyncOfANewEmptyFileMakesItsNameDurable) {
  auto handle = create("x");
  ASSERT_TRUE(filesystem_->sync(*handle, false));
  EXPECT_TRUE(name_is_durable());
  filesystem_->release(std::move(handle));
}

TEST_F(Durability, FsyncOfAFrameThatWasMadeAnewForItsFirstDataMakesItsNameDurable) {
  auto handle = create("x");
  // Durable while it is empty: it must be so again when another file has taken its place.
  ASSERT_TRUE(filesystem_->sync(*handle, false));
  static_cast<void>(name_is_durable());
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  ASSERT_TRUE(write(*handle, 0, items));
  ASSERT_TRUE(filesystem_->flush(*handle));
  ASSERT_TRUE(filesystem_->sync(*handle, false));
  const auto events = disk_.take_events();
  ASSERT_NE(std::find(events.begin(), events.end(), Event::named), events.end()) << "it was not made anew";
  bool durable = false;
  for (const Event event : events)
    durable = event == Event::folder_synced || (durable && event != Event::named);
  EXPECT_TRUE(durable);
  filesystem_->release(std::move(handle));
}

TEST_F(Durability, ACommitThatStopsAfterSomeOfManyPatchesLosesNothing) {
  constexpr std::size_t kChunk = 4096;
  constexpr std::size_t kChunks = 120;  // of which 16 are committed at a time
  for (int writes = 0; writes < 40; ++writes) {
    const std::string name = "x" + std::to_string(writes);
    auto handle = create(name);
    std::string expected(kChunks * kChunk, '\0');
    for (std::size_t i = 0; i < expected.size(); ++i)
      expected[i] = static_cast<char>('a' + i / 7 % 19);
    ASSERT_TRUE(write(*handle, 0, expected));
    ASSERT_TRUE(filesystem_->sync(*handle, false));
    for (std::size_t chunk = 0; chunk < kChunks; ++chunk) {
      expected.replace(chunk * kChunk + 100, 4, "here");
      ASSERT_TRUE(write(*handle, chunk * kChunk + 100, "here"));
    }
    disk_.writes_left = writes;
    const bool done = filesystem_->sync(*handle, false).has_value();
    disk_.writes_left = -1;
    EXPECT_TRUE(read(*handle, expected.size() + 1) == expected) << writes;
    // More patches over what is neither all old nor all new.
    expected.replace(50 * kChunk + 102, 4, "more");
    ASSERT_TRUE(write(*handle, 50 * kChunk + 102, "more"));
    ASSERT_TRUE(filesystem_->sync(*handle, false)) << writes;
    EXPECT_TRUE(read(*handle, expected.size() + 1) == expected) << writes;
    filesystem_->release(std::move(handle));
    filesystem_->stop();
    start();
    auto found = filesystem_->lookup(kRootNode, name);
    ASSERT_TRUE(found);
    auto again = filesystem_->open(found->node, O_RDONLY);
    ASSERT_TRUE(again);
    EXPECT_TRUE(read(**again, expected.size() + 1) == expected) << writes;
    filesystem_->release(std::move(*again));
    if (done) return;
  }
  FAIL() << "it never came to its end";
}

}  // namespace
}  // namespace cframefs::fs
