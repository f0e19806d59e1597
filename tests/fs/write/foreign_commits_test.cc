// Commits of another program in the instants in which this mount takes note of a state of its own: between a change of
// the file and the look at its version. What the other program has written shows, and later writes join it.
#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <future>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "tests/fs/silent_kernel.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

constexpr const char* kNoteAttribute = "user.blosc2.vlmeta.note";

/// Calls each function once.
class InterruptedFiles final : public test::ForwardingFiles {
 public:
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    if (operation == LOCK_EX) stand_at(before_lock);
    auto held = ForwardingFiles::try_lock(file, operation);
    if (operation == LOCK_UN && is_locked_) call(after_commit);
    is_locked_ = operation == LOCK_EX;
    return held;
  }
  codec::Result<struct stat> status(frame::OpenFile file) override {
    if (looks_left > 0 && --looks_left == 0) call(before_look);
    return ForwardingFiles::status(file);
  }
  codec::Result<void> change_mode(frame::OpenFile file, mode_t mode) override {
    stand_at(before_change);
    auto done = ForwardingFiles::change_mode(file, mode);
    call(after_change);
    return done;
  }
  codec::Result<void> set_times(frame::OpenFile file, const std::array<struct timespec, 2>& times) override {
    call(before_times);
    auto done = ForwardingFiles::set_times(file, times);
    call(after_change);
    return done;
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    stand_at(before_change);
    auto done = ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
    call(after_change);
    return done;
  }
  std::function<void()> after_commit;  // when its lock is released
  std::function<void()> before_look;   // at the version of an open file, the last one of looks_left
  std::atomic<int> looks_left = 0;
  std::function<void()> after_change;  // of a mode, times or a name
  std::function<void()> before_times;
  // The next thread that comes there stands until the gate is open.
  std::atomic<Gate*> before_lock{nullptr};    // of a commit
  std::atomic<Gate*> before_change{nullptr};  // of a mode or a name

 private:
  static void stand_at(std::atomic<Gate*>& place) {
    if (Gate* gate = place.exchange(nullptr)) gate->pass();
  }
  void call(std::function<void()>& function) {
    std::function<void()> once;
    {
      codec::MutexLock lock(mutex_);
      once.swap(function);
    }
    if (once) once();
  }
  codec::Mutex mutex_;  // calls come from several threads
  std::atomic<bool> is_locked_ = false;
};

class ForeignCommits : public WrittenFilesystem {
 protected:
  void SetUp() override {
    files_ = &interrupted_;
    WrittenFilesystem::SetUp();
    ASSERT_TRUE(close(create_with("x", "0123456789")));
    other_ = std::make_unique<Filesystem>(frame::system_files(), options_);
    ASSERT_TRUE(other_->open_source(false));
    other_->start(other_kernel_, {}, {});
  }
  void TearDown() override {
    if (other_) other_->stop();
    WrittenFilesystem::TearDown();
  }
  std::unique_ptr<FileHandle> create_with(const std::string& name, const std::string& text) {
    auto handle = create(name);
    EXPECT_TRUE(write(*handle, 0, text));
    return handle;
  }
  void make_sparse(const std::string& name, const std::string& text) const {
    std::filesystem::create_directory(directory_.path() / (name + ".b2frame"));
    const std::vector<std::uint8_t> plain(text.begin(), text.end());
    for (const auto& [part, bytes] : test::sparse_frame(plain, 4096))
      directory_.write(name + ".b2frame/" + part, bytes);
  }
  /// Overwrites the beginning of a file through another mount of the source.
  void theirs(const std::string& name, const std::string& text) {
    const auto found = other_->names().lookup(kRootNode, name);
    ASSERT_TRUE(found);
    auto handle = other_->files().open(found->node, O_WRONLY);
    ASSERT_TRUE(handle) << codec::describe(handle.error());
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    EXPECT_TRUE(other_->files().write(**handle, 0, bytes, false));
    EXPECT_TRUE(other_->files().flush(**handle));
    other_->files().release(std::move(*handle));
    ++their_commits_;
  }
  /// Opens a file as the kernel does: if the file has just changed, it looks once more.
  std::unique_ptr<FileHandle> open_twice(const std::string& name) {
    const auto found = filesystem_->names().lookup(kRootNode, name);
    EXPECT_TRUE(found);
    auto handle = filesystem_->files().open(found->node, O_RDWR);
    return handle ? std::move(*handle) : errno_of(handle) == ESTALE ? open(name) : nullptr;
  }
  /// A file shows their bytes, and what is written next joins them.
  void expect_theirs(FileHandle& handle, const std::string& name, const std::string& rest) {
    EXPECT_EQ(their_commits_, 1);
    EXPECT_EQ(read(handle), "THEY" + rest);
    EXPECT_TRUE(write(handle, 8, "US"));
    const auto committed = filesystem_->files().flush(handle);
    EXPECT_TRUE(committed) << codec::describe(committed.error());
    EXPECT_EQ(content(name), "THEY" + rest.substr(0, 4) + "US");
  }

  /// Runs `change`, a change by this mount. When it stands at `place`, another mount commits, and then `program` runs.
  void beside(const std::function<void()>& change, std::atomic<Gate*>& place, const std::function<void()>& program) {
    Gate gate;
    place = &gate;
    std::promise<void> ended;
    std::thread changing(change);
    std::thread running;
    {
      const OpensAtEnd opens(gate);
      gate.wait_for(1);
      theirs("x", "THEY");
      running = std::thread([&] {
        program();
        ended.set_value();
      });
      // It may wait for the change.
      ended.get_future().wait_for(std::chrono::milliseconds(200));
    }
    running.join();
    changing.join();
  }
  /// Writes behind what the other mount has written.
  void write_ours() {
    auto handle = open_twice("x");
    ASSERT_NE(handle, nullptr);
    EXPECT_TRUE(write(*handle, 8, "US"));
    const auto closed = close(std::move(handle));
    EXPECT_TRUE(closed) << codec::describe(closed.error());
  }

  InterruptedFiles interrupted_;
  SilentKernel other_kernel_;
  std::unique_ptr<Filesystem> other_;
  int their_commits_ = 0;
};

TEST_F(ForeignCommits, AfterACommit) {
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 4, "ours"));
  interrupted_.after_commit = [&] { theirs("x", "THEY"); };
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  expect_theirs(*handle, "x", "ours89");
  EXPECT_TRUE(close(std::move(handle)));
}

// Otherwise their data, which are not committed yet, would lie over a file with another time.
TEST_F(ForeignCommits, ComeAfterTheTimeOfACommitIsSet) {
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 4, "ours"));
  size_of("x");  // shows the time of the write
  bool was_called = false;
  interrupted_.before_times = [&] {
    was_called = true;
    const auto file = frame::system_files().open_named((directory_.path() / "x.b2frame").string(), O_RDONLY);
    ASSERT_TRUE(file);
    const frame::Descriptor other(frame::system_files(), *file);
    EXPECT_EQ(frame::system_files().try_lock(other.handle(), LOCK_EX), false);
  };
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_TRUE(was_called);
}

TEST_F(ForeignCommits, WhileTheFrameIsOpened) {
  for (int look = 1;; ++look) {
    SCOPED_TRACE(look);
    const std::string name = "x" + std::to_string(look);
    ASSERT_TRUE(close(create_with(name, "0123456789")));
    their_commits_ = 0;
    interrupted_.before_look = [&] { theirs(name, "THEY"); };
    interrupted_.looks_left = look;
    auto handle = open_twice(name);
    ASSERT_NE(handle, nullptr);
    if (std::exchange(interrupted_.before_look, nullptr)) {
      EXPECT_GT(look, 3) << "the open was not interrupted in each look";
      return;
    }
    expect_theirs(*handle, name, "456789");
    EXPECT_TRUE(close(std::move(handle)));
  }
}

TEST_F(ForeignCommits, WhileItsModeChanges) {
  auto handle = open("x");
  interrupted_.after_change = [&] { theirs("x", "THEY"); };
  AttributeChanges changes;
  changes.mode = 0600;
  ASSERT_TRUE(filesystem_->attributes().change(handle->node->id, handle.get(), changes));
  expect_theirs(*handle, "x", "456789");
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(ForeignCommits, WhileItsNameChanges) {
  auto handle = open("x");
  interrupted_.after_change = [&] { theirs("y", "THEY"); };
  ASSERT_TRUE(filesystem_->names().rename(kRootNode, "x", kRootNode, "y", 0));
  expect_theirs(*handle, "y", "456789");
  EXPECT_TRUE(close(std::move(handle)));
}

// A compaction that begins late must not hide what another mount has committed in between.
TEST_F(ForeignCommits, BeforeACompactionThatFollowsAClose) {
  // Two thirds of it are stored twice: enough for the last close to compact the frame, too little for a commit.
  std::mt19937_64 random(1);
  std::string text(30'000, ' ');
  auto handle = open("x");
  for (const std::size_t length : {30'000, 20'000}) {
    std::generate_n(text.begin(), length, [&] { return static_cast<char>(random()); });
    ASSERT_TRUE(write(*handle, 0, text));
    ASSERT_TRUE(filesystem_->files().flush(*handle));
  }
  beside([&] { filesystem_->files().release(std::move(handle)); }, interrupted_.before_lock, [&] { write_ours(); });
  EXPECT_TRUE(content("x") == "THEY" + text.substr(4, 4) + "US" + text.substr(10));
}

TEST_F(ForeignCommits, BeforeMetadataAreCommitted) {
  auto handle = open("x");
  const auto set = [&] {
    const auto done = filesystem_->extended_attributes().set(handle->node->id, kNoteAttribute, "1", 0);
    EXPECT_TRUE(done) << codec::describe(done.error());
  };
  beside(set, interrupted_.before_lock, [&] { write_ours(); });
  EXPECT_TRUE(write(*handle, 0, "BACK"));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "BACK4567US");
  const auto value = filesystem_->extended_attributes().get(node_of("x"), kNoteAttribute);
  ASSERT_TRUE(value);
  EXPECT_EQ(std::string(value->begin(), value->end()), "1");
}

TEST_F(ForeignCommits, BeforeItsModeChanges) {
  auto handle = open("x");
  AttributeChanges changes;
  changes.mode = 0600;
  const auto change = [&, node = node_of("x")] {
    EXPECT_TRUE(filesystem_->attributes().change(node, nullptr, changes));
  };
  beside(change, interrupted_.before_change, [&] {
    EXPECT_TRUE(write(*handle, 8, "US"));
    EXPECT_TRUE(close(std::move(handle)));
  });
  EXPECT_EQ(content("x"), "THEY4567US");
}

TEST_F(ForeignCommits, BeforeItsNameChanges) {
  auto handle = open("x");
  const auto change = [&] { EXPECT_TRUE(filesystem_->names().rename(kRootNode, "x", kRootNode, "y", 0)); };
  beside(change, interrupted_.before_change, [&] { EXPECT_TRUE(write(*handle, 8, "US")); });
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("y"), "THEY4567US");
}

// No program has the frame open: the kernel must not keep its pages for the next one.
TEST_F(ForeignCommits, WhileAttributesChangeOfAFrameWhosePagesTheKernelHas) {
  AttributeChanges mode;
  mode.mode = 0600;
  AttributeChanges time;
  time.times = {{{0, UTIME_OMIT}, {1, 0}}};
  const std::vector<std::function<void()>> changes = {
      [&] { ASSERT_TRUE(filesystem_->attributes().change(node_of("x"), nullptr, mode)); },
      [&] { ASSERT_TRUE(filesystem_->attributes().change(node_of("x"), nullptr, time)); },
      [&] { ASSERT_TRUE(filesystem_->names().rename(kRootNode, "x", kRootNode, "y", 0)); }};
  for (std::size_t i = 0; i < changes.size(); ++i) {
    SCOPED_TRACE(i);
    remount();
    let_settle("x");
    auto reader = open("x", O_RDONLY);
    const std::string before = read(*reader);
    filesystem_->files().release(std::move(reader));
    reader = open("x", O_RDONLY);
    EXPECT_TRUE(reader->keep_pages);
    filesystem_->files().release(std::move(reader));
    const int drops = kernel_.files;
    const std::string name = i == 2 ? "y" : "x";
    interrupted_.after_change = [&] { theirs(name, std::to_string(i) + before.substr(1) + "and more"); };
    changes[i]();
    EXPECT_FALSE(interrupted_.after_change) << "was called";
    reader = open(name, O_RDONLY);
    EXPECT_TRUE(!reader->keep_pages || kernel_.files > drops);
    EXPECT_EQ(read(*reader), std::to_string(i) + before.substr(1) + "and more");
    filesystem_->files().release(std::move(reader));
  }
}

// Its commits replace the index, which another mount has open.
TEST_F(ForeignCommits, OfASparseFrame) {
  make_sparse("s", "0123456789");
  auto handle = open("s");
  ASSERT_EQ(read(*handle), "0123456789");
  theirs("s", "THEY");
  expect_theirs(*handle, "s", "456789");
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(ForeignCommits, OfASparseFrameUnderDirtyData) {
  make_sparse("s", "0123456789");
  auto handle = open("s");
  ASSERT_TRUE(write(*handle, 8, "US"));
  theirs("s", "THEY");
  EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), ESTALE);
  EXPECT_EQ(errno_of(close(std::move(handle))), ESTALE);
  EXPECT_EQ(content("s"), "THEY456789");
}

// Dirty data lie over a state that is gone.
TEST_F(ForeignCommits, AfterACommitWithMoreWrittenMeanwhile) {
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 4, "ours"));
  interrupted_.after_commit = [&] {
    theirs("x", "THEY");
    EXPECT_TRUE(write(*handle, 8, "US"));
  };
  ASSERT_TRUE(filesystem_->files().flush(*handle));
  EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), ESTALE);
  EXPECT_EQ(errno_of(close(std::move(handle))), ESTALE);
  EXPECT_EQ(content("x"), "THEYours89");
}

}  // namespace
}  // namespace cframefs::fs
