// Times of frames: they move with each write, and a commit leaves the time of the last one.
#include <atomic>
#include <ctime>
#include <future>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

using Times = std::pair<std::int64_t, std::int64_t>;  // mtime, ctime

std::int64_t nanoseconds(const struct timespec& time) {
  return static_cast<std::int64_t>(time.tv_sec) * 1'000'000'000 + time.tv_nsec;
}

class TimesTest : public WrittenFilesystem {
 protected:
  Times shown(const std::string& name) {
    auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found);
    return {nanoseconds(found->status.st_mtim), nanoseconds(found->status.st_ctim)};
  }
  std::int64_t stored_mtime(const std::string& name) const {
    struct stat status {};
    EXPECT_EQ(::stat((directory_.path() / (name + ".b2frame")).c_str(), &status), 0);
    return nanoseconds(status.st_mtim);
  }
  /// Until the clock that stamps files has moved on.
  static void let_clock_move() {
    struct timespec begin {};
    struct timespec now {};
    clock_gettime(CLOCK_REALTIME_COARSE, &begin);
    do {
      std::this_thread::sleep_for(std::chrono::milliseconds(2));
      clock_gettime(CLOCK_REALTIME_COARSE, &now);
    } while (nanoseconds(now) - nanoseconds(begin) < 20'000'000);
  }
  std::unique_ptr<FileHandle> committed(const std::string& name, std::size_t bytes) {
    auto handle = create(name);
    EXPECT_TRUE(write(*handle, 0, std::string(bytes, 'a')));
    EXPECT_TRUE(filesystem_->files().flush(*handle));
    let_clock_move();
    return handle;
  }
  void expect_moved(const std::string& name, const Times& before, const char* what) {
    const Times now = shown(name);
    EXPECT_GT(now.first, before.first) << what << ": mtime";
    EXPECT_GT(now.second, before.second) << what << ": ctime";
  }
};

TEST_F(TimesTest, MoveWithEachChangeBeforeItIsCommitted) {
  auto handle = committed("x", 10'000);
  Times before = shown("x");
  const auto moves = [&](const char* what) {
    expect_moved("x", before, what);
    let_clock_move();
    before = shown("x");
  };
  ASSERT_TRUE(write(*handle, 100, "b"));
  moves("write");
  ASSERT_TRUE(write(*handle, 100, "c"));
  moves("second write");
  ASSERT_TRUE(resize(*handle, 20'000));
  moves("longer");
  ASSERT_TRUE(resize(*handle, 5'000));
  moves("shorter");
  ASSERT_TRUE(resize(*handle, 5'000));
  moves("the same size, dirty");
  ASSERT_TRUE(filesystem_->files().allocate(*handle, 0, 0, 30'000));
  moves("fallocate");
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  let_clock_move();
  before = shown("x");
  ASSERT_TRUE(resize(*handle, 30'000));
  moves("the same size, clean");
  EXPECT_EQ(stored_mtime("x"), before.first);
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: I1
TEST_F(TimesTest, MoveAlsoWhereAChangeTakesBackWhatWaits) {
  auto handle = create("x");
  for (const bool first : {true, false}) {
    const Times empty = shown("x");
    let_clock_move();
    ASSERT_TRUE(write(*handle, 0, std::string(100, 'a')));
    expect_moved("x", empty, "write");
    const Times written = shown("x");
    let_clock_move();
    ASSERT_TRUE(resize(*handle, 0)) << "nothing is left to be committed";
    expect_moved("x", written, first ? "cut off" : "cut off again");
  }
  const Times cut = shown("x");
  let_clock_move();
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(shown("x").first, cut.first);
  EXPECT_EQ(stored_mtime("x"), cut.first);
}

TEST_F(TimesTest, ACommitLeavesTheTimeOfTheLastWrite) {
  auto handle = committed("x", 10'000);
  for (const bool first : {true, false}) {
    ASSERT_TRUE(write(*handle, 100, first ? "b" : "c"));
    const std::int64_t written = shown("x").first;
    let_clock_move();
    ASSERT_TRUE(first ? filesystem_->files().flush(*handle) : filesystem_->files().sync(*handle, false));
    EXPECT_EQ(shown("x").first, written);
    EXPECT_EQ(stored_mtime("x"), written);
  }
  EXPECT_TRUE(close(std::move(handle)));
}

// semantics: I1
TEST_F(TimesTest, AnOpenFileKeepsThemWithoutAName) {
  for (const bool replaced : {false, true}) {
    auto handle = committed("x", 10'000);
    ASSERT_TRUE(write(*handle, 100, "b"));
    const Times written = shown("x");
    if (replaced) {
      EXPECT_TRUE(close(create("y")));
      ASSERT_TRUE(filesystem_->names().rename(kRootNode, "y", kRootNode, "x", 0));
    } else {
      ASSERT_TRUE(filesystem_->names().remove(kRootNode, "x", false));
    }
    const auto open = filesystem_->attributes().of(handle->node->id, handle.get());
    ASSERT_TRUE(open);
    EXPECT_EQ(nanoseconds(open->status.st_mtim), written.first) << replaced;
    EXPECT_GE(nanoseconds(open->status.st_ctim), written.second) << replaced;
    EXPECT_EQ(open->status.st_size, 10'000);
    EXPECT_TRUE(close(std::move(handle)));
  }
}

TEST_F(TimesTest, TheFirstCommitOfANewFileLeavesTheTimeOfTheLastWrite) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, std::string(100'000, 'a')));
  const std::int64_t written = shown("x").first;
  let_clock_move();
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(shown("x").first, written);
}

TEST_F(TimesTest, ACommitThatMakesANewFileKeepsTheAccessTime) {
  auto handle = committed("x", 10'000);
  AttributeChanges changes;
  // Of the past: the system would move it with the next read.
  changes.times = {timespec{1'000'000'000, 5}, timespec{0, UTIME_OMIT}};
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  ASSERT_TRUE(resize(*handle, 0));  // an empty frame is a new file
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  ASSERT_TRUE(write(*handle, 0, "b"));
  EXPECT_TRUE(close(std::move(handle)));
  struct stat status {};
  ASSERT_EQ(::stat((directory_.path() / "x.b2frame").c_str(), &status), 0);
  EXPECT_EQ(nanoseconds(status.st_atim), 1'000'000'000'000'000'005);
}

TEST_F(TimesTest, WhatAProgramSetsBeforeItClosesStays) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, std::string(10'000, 'a')));
  AttributeChanges changes;
  changes.times = {timespec{1'000'000'000, 0}, timespec{1'100'000'000, 7}};
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(shown("x").first, 1'100'000'000'000'000'007);
  EXPECT_EQ(stored_mtime("x"), 1'100'000'000'000'000'007);
  remount();
  EXPECT_EQ(shown("x").first, 1'100'000'000'000'000'007);
}

TEST_F(TimesTest, WhatAProgramSetsWhileDataWaitsIsShownAndStays) {
  auto handle = committed("x", 10'000);
  ASSERT_TRUE(write(*handle, 100, "b"));
  AttributeChanges changes;
  changes.times = {timespec{0, UTIME_OMIT}, timespec{1'100'000'000, 7}};
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  EXPECT_EQ(shown("x").first, 1'100'000'000'000'000'007);
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(stored_mtime("x"), 1'100'000'000'000'000'007);
  let_clock_move();
  ASSERT_TRUE(write(*handle, 200, "c"));
  EXPECT_GT(shown("x").first, 1'100'000'000'000'000'007) << "a write after it moves the time again";
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_GT(stored_mtime("x"), 1'100'000'000'000'000'007);
}

TEST_F(TimesTest, SettingTimesCommitsNothing) {
  auto handle = committed("x", 10'000);
  ASSERT_TRUE(write(*handle, 100, "b"));
  disk_.write_error = ENOSPC;  // nothing can be committed
  AttributeChanges changes;
  changes.times = {timespec{0, UTIME_OMIT}, timespec{1'100'000'000, 0}};
  EXPECT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  disk_.write_error = 0;
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(stored_mtime("x"), 1'100'000'000'000'000'000);
}

TEST_F(TimesTest, TruncatingAnEmptyFileAtOpenMovesThem) {
  EXPECT_TRUE(close(create("x")));
  let_clock_move();
  const Times before = shown("x");
  EXPECT_TRUE(close(open("x", O_WRONLY | O_TRUNC)));
  expect_moved("x", before, "O_TRUNC");
}

TEST_F(TimesTest, AModeThatIsChangedWhileDataWaitsMovesTheTimeOfChange) {
  auto handle = committed("x", 10'000);
  ASSERT_TRUE(write(*handle, 100, "b"));
  let_clock_move();
  const Times before = shown("x");
  AttributeChanges changes;
  changes.mode = 0600;
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  EXPECT_EQ(shown("x").first, before.first);
  EXPECT_GT(shown("x").second, before.second);
  EXPECT_TRUE(close(std::move(handle)));
}

/// A change of times stands at a gate.
class GatedTimes : public testing::Test {
 protected:
  class Files final : public test::ForwardingFiles {
   public:
    codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override {
      if (is_gated) gate.pass();
      return ForwardingFiles::set_times(file, times);
    }
    std::atomic<bool> is_gated{false};
    Gate gate;
  };

  void SetUp() override {
    options_.source = directory_.path();
    options_.commit_interval = 1000;
    filesystem_ = std::make_unique<Filesystem>(files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  void TearDown() override { filesystem_->stop(); }
  std::unique_ptr<FileHandle> open_and_write(NodeId node, const std::string& text) {
    auto handle = filesystem_->files().open(node, O_RDWR);
    EXPECT_TRUE(handle) << handle.error().reason;
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    EXPECT_TRUE(filesystem_->files().write(**handle, 0, bytes, false));
    return std::move(*handle);
  }

  test::TempDir directory_;
  Files files_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

TEST_F(GatedTimes, AChangeOfAttributesBesideAnOpenIsNoChangeByAnotherProgram) {
  auto made = filesystem_->names().create(kRootNode, "x", O_RDWR | O_CREAT, 0644, {});
  ASSERT_TRUE(made);
  const NodeId node = made->attributes.node;
  filesystem_->files().release(std::move(made->handle));
  AttributeChanges changes;
  changes.times = {timespec{1, 0}, timespec{1, 0}};
  files_.is_gated = true;
  std::future<std::unique_ptr<FileHandle>> writer;
  {
    const OpensAtEnd opens(files_.gate);
    auto changed = std::async(std::launch::async,
                              [&] { return filesystem_->attributes().change(node, nullptr, changes).has_value(); });
    files_.gate.wait_for(1);
    writer = std::async(std::launch::async, [&] { return open_and_write(node, "written"); });
    // An open that does not wait for the change has long been answered then.
    writer.wait_for(std::chrono::milliseconds(500));
    files_.gate.open();
    EXPECT_TRUE(changed.get());
  }
  auto handle = writer.get();
  const auto synced = filesystem_->files().sync(*handle, false);
  EXPECT_TRUE(synced) << synced.error().reason;
  Reply reply;
  ASSERT_TRUE(filesystem_->files().read(*handle, 0, 100, reply));
  std::string text(reply.size(), '\0');
  reply.copy_to(reinterpret_cast<std::uint8_t*>(text.data()));
  EXPECT_EQ(text, "written");
  filesystem_->files().release(std::move(handle));
}

}  // namespace
}  // namespace cframefs::fs
