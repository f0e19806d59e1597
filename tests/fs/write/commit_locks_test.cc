// Commits while other programs change or lock the frame: nothing of theirs is overwritten, and no accepted data are
// lost while the mount lives.
#include <cerrno>
#include <functional>
#include <string>
#include <thread>
#include <utility>

#include <gtest/gtest.h>
#include <sys/file.h>

#include "frame/io/advisory_lock.h"
#include "frame/io/replacement_file.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/limited_files.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

/// Runs `at_create` once, as soon as a commit has created the file that will replace the frame.
class InterruptedDisk final : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    auto made = ForwardingFiles::create_at(dir, path, flags, mode);
    if (path.starts_with(frame::kTemporaryPrefix)) run(at_create);
    return made;
  }
  std::function<void()> at_create;

 private:
  static void run(std::function<void()>& what) {
    if (auto once = std::exchange(what, nullptr)) once();
  }
};

template <class Disk>
class WrittenOver : public ::testing::Test {
 protected:
  void SetUp() override {
    options_.source = directory_.path();
    options_.new_frames.chunksize = 4096;
    options_.commit_interval = 1000;
    filesystem_ = std::make_unique<Filesystem>(disk_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_);
  }
  void TearDown() override { filesystem_->stop(); }

  std::unique_ptr<FileHandle> create(const std::string& name) {
    auto created = filesystem_->names().create(kRootNode, name, O_RDWR | O_CREAT, 0644, {});
    EXPECT_TRUE(created) << created.error().reason;
    return created ? std::move(created->handle) : nullptr;
  }
  codec::Result<void> write(FileHandle& handle, std::uint64_t at, const std::string& text) {
    const std::vector<std::uint8_t> bytes(text.begin(), text.end());
    return filesystem_->files().write(handle, at, bytes, false);
  }
  /// Makes a frame of one chunk, as another program does.
  static std::vector<std::uint8_t> foreign_frame() { return test::plain_frame(test::pattern(4096, 9), 4096).build(); }

  test::TempDir directory_;
  Disk disk_;
  CountingKernel kernel_;
  MountOptions options_;
  std::unique_ptr<Filesystem> filesystem_;
};

using FirstCommitTest = WrittenOver<InterruptedDisk>;

TEST_F(FirstCommitTest, WhatAnotherProgramAppendsDuringACommitStays) {
  // Items of 4 bytes: the first commit replaces the empty frame by one with their typesize.
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, items));
  const auto foreign = foreign_frame();
  bool appended = false;
  disk_.at_create = [&] {
    appended = true;
    directory_.write("x.b2frame", foreign);
  };
  EXPECT_EQ(errno_of(filesystem_->files().flush(*handle)), ESTALE);
  EXPECT_TRUE(appended) << "the empty frame was not replaced";
  EXPECT_TRUE(test::file_bytes(directory_.path() / "x.b2frame") == foreign);
  filesystem_->files().release(std::move(handle));
}

TEST_F(FirstCommitTest, TheSideCarIsHeldAndItsCounterRaisedBeforeTheFileIsReplaced) {
  std::string items;
  for (int i = 0; i < 3000; ++i)
    items += std::string{static_cast<char>(i), static_cast<char>(i / 256), 0, 0};
  auto handle = create("x");
  directory_.write("x.b2frame.b2lock", std::vector<std::uint8_t>(16));
  ASSERT_TRUE(write(*handle, 0, items));
  bool was_free = true;
  disk_.at_create = [&] {
    const auto side_car = frame::system_files().open_named((directory_.path() / "x.b2frame.b2lock").string(), O_RDWR);
    ASSERT_TRUE(side_car);
    const frame::Descriptor file(frame::system_files(), *side_car);
    const auto taken = frame::system_files().try_lock(file.handle(), LOCK_EX);
    was_free = taken && *taken;
    EXPECT_EQ(test::file_bytes(directory_.path() / "x.b2frame.b2lock")[8], 1);
  };
  EXPECT_TRUE(filesystem_->files().flush(*handle));
  EXPECT_FALSE(was_free);
  filesystem_->files().release(std::move(handle));
}

class CommitLocksTest : public WrittenFilesystem {
 protected:
  void SetUp() override {
    options_.lock_timeout = 0.02;
    WrittenFilesystem::SetUp();
  }
  void make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    ASSERT_TRUE(write(*handle, 0, text));
    ASSERT_TRUE(close(std::move(handle)));
  }
  /// Overwrites the beginning of a file and returns the errno of close(2).
  int overwrite(const std::string& name, const std::string& text) {
    auto handle = open(name);
    EXPECT_TRUE(write(*handle, 0, text));
    return errno_of(close(std::move(handle)));
  }
  std::string on_disk_of(const std::string& name) {
    const auto read = test::read_model(*stored(name + ".b2frame"));
    return read ? std::string(read->plain.begin(), read->plain.end()) : "";
  }
  /// Waits up to 30 s until the flusher has committed `text`. Returns whether it has.
  bool reaches_disk(const std::string& name, const std::string& text) {
    for (int i = 0; i < 3000 && on_disk_of(name) != text; ++i)
      std::this_thread::sleep_for(std::chrono::milliseconds(10));
    return on_disk_of(name) == text;
  }
  /// Another program's descriptor of a file, with a lock on it.
  frame::Descriptor locked(const std::string& file, int operation, int access = O_RDONLY) {
    auto fd = frame::system_files().open_named((directory_.path() / file).string(), access);
    EXPECT_TRUE(fd);
    frame::Descriptor made(frame::system_files(), *fd);
    EXPECT_TRUE(frame::system_files().try_lock(made.handle(), operation).value_or(false));
    return made;
  }
  std::uint64_t lost() const { return filesystem_->statistics().writing.bytes_lost; }
};

TEST_F(CommitLocksTest, ACommitWaitsForALockThatIsHeldBriefly) {
  options_.lock_timeout = 60;
  remount();
  make("x", "old");
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 0, "new"));
  disk_.refused_locks = 9;
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(on_disk_of("x"), "new");
}

TEST_F(CommitLocksTest, DataThatALockKeepsFromTheDiskAreReadAndCommittedLater) {
  options_.commit_interval = 0.05;
  remount();
  make("x", "old");
  disk_.refused_locks = -1;
  EXPECT_EQ(overwrite("x", "newer"), EBUSY);
  EXPECT_EQ(content("x"), "newer");
  EXPECT_EQ(size_of("x"), 5U);
  EXPECT_EQ(on_disk_of("x"), "old");
  disk_.refused_locks = 0;
  EXPECT_TRUE(reaches_disk("x", "newer"));
  EXPECT_EQ(content("x"), "newer");
  EXPECT_EQ(lost(), 0U);
}

TEST_F(CommitLocksTest, UncommittedDataAreFoundAgainWhenTheKernelHasForgottenTheFile) {
  make("x", "old");
  const auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(found);
  disk_.refused_locks = -1;
  EXPECT_EQ(overwrite("x", "newer"), EBUSY);
  filesystem_->names().forget(found->node, 3);  // all look-ups: by create(), here and by open()
  EXPECT_EQ(content("x"), "newer");
  EXPECT_EQ(size_of("x"), 5U);
  ASSERT_TRUE(filesystem_->names().rename(kRootNode, "x", kRootNode, "y", 0));
  disk_.refused_locks = 0;
  ASSERT_TRUE(close(open("y")));
  EXPECT_EQ(on_disk_of("y"), "newer");
}

TEST_F(CommitLocksTest, NodesOfFilesThatAreWrittenAndClosedAreForgotten) {
  make("x", "text");
  auto found = filesystem_->names().lookup(kRootNode, "x");
  ASSERT_TRUE(found);
  filesystem_->names().forget(found->node, 2);
  EXPECT_EQ(filesystem_->nodes().find(found->node), nullptr);
}

TEST_F(CommitLocksTest, AFullDiskKeepsClosedFilesUntilThereIsRoom) {
  options_.commit_interval = 0.05;
  remount();
  make("x", "old");
  disk_.write_error = ENOSPC;
  EXPECT_EQ(overwrite("x", "new"), ENOSPC);
  EXPECT_EQ(content("x"), "new");
  // Another program continues where the first one stopped.
  auto handle = open("x", O_WRONLY | O_APPEND);
  ASSERT_TRUE(write(*handle, 3, " and more"));
  EXPECT_EQ(errno_of(close(std::move(handle))), ENOSPC);
  disk_.write_error = 0;
  EXPECT_TRUE(reaches_disk("x", "new and more"));
}

TEST_F(CommitLocksTest, DataThatCannotBeCommittedToTheEndAreCountedAsLost) {
  make("x", "old");
  disk_.write_error = ENOSPC;
  EXPECT_EQ(overwrite("x", "newer"), ENOSPC);
  auto open_still = open("x");
  filesystem_->stop();
  EXPECT_EQ(lost(), 5U);
  open_still.reset();
  disk_.write_error = 0;
  remount();
  EXPECT_EQ(content("x"), "old");
}

TEST_F(CommitLocksTest, TheMountsOwnLockGoesWithTheLastWriter) {
  auto handle = create("x");
  ASSERT_TRUE(write(*handle, 0, std::string(5000, 'x')));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  // A read continues, through what the writer has opened.
  auto reader = open("x", O_RDONLY);
  Gate gate;
  disk_.read_gate = &gate;
  std::thread reading([&] { EXPECT_EQ(read(*reader), std::string(5000, 'x')); });
  {
    const OpensAtEnd opens(gate);
    gate.wait_for(1);
    disk_.read_gate = nullptr;
    EXPECT_TRUE(close(std::move(handle)));
    locked("x.b2frame", LOCK_EX);
    const auto other = locked("x.b2frame", LOCK_SH);
    const auto is_closed = [&] {
      return frame::system_files().try_byte_lock(other.handle(), frame::kOpenLockAt, frame::ByteLock::examine);
    };
    EXPECT_EQ(is_closed(), true);
    // The next writer has a lock of its own.
    handle = open("x");
    EXPECT_EQ(is_closed(), false);
  }
  reading.join();
  EXPECT_TRUE(close(std::move(handle)));
  filesystem_->files().release(std::move(reader));
}

TEST_F(CommitLocksTest, ATruncateThatFailsIsNotDoneLater) {
  make("x", "old text");
  const auto found = filesystem_->names().lookup(kRootNode, "x");
  disk_.write_error = ENOSPC;
  AttributeChanges shorter;
  shorter.size = 3;
  EXPECT_EQ(errno_of(filesystem_->attributes().change(found->node, nullptr, shorter)), ENOSPC);
  EXPECT_EQ(content("x"), "old text");
  disk_.write_error = 0;
  remount();
  EXPECT_EQ(content("x"), "old text");
}

TEST_F(CommitLocksTest, AReadersSharedLockKeepsNothingFromTheDisk) {
  make("x", "old");
  const auto reader = locked("x.b2frame", LOCK_SH);
  EXPECT_EQ(overwrite("x", "new"), 0);
  EXPECT_EQ(on_disk_of("x"), "new");
  EXPECT_EQ(on_disk(), std::vector<std::string>{"x.b2frame"});
}

TEST_F(CommitLocksTest, AReadersExclusiveLockLosesNothing) {
  make("x", "old");
  const auto reader = locked("x.b2frame", LOCK_EX);
  EXPECT_EQ(overwrite("x", "new"), EBUSY);
  EXPECT_EQ(on_disk_of("x"), "old");
  stop();
  EXPECT_EQ(on_disk_of("x"), "new");
}

TEST_F(CommitLocksTest, TheReferenceLibrarysLockIsHonouredToTheEnd) {
  make("x", "old");
  directory_.write("x.b2frame.b2lock", std::vector<std::uint8_t>(16));
  const auto writer = locked("x.b2frame.b2lock", LOCK_EX, O_RDWR);
  EXPECT_EQ(overwrite("x", "new"), EBUSY);
  filesystem_->stop();
  EXPECT_EQ(lost(), 3U);
  EXPECT_EQ(on_disk_of("x"), "old");
}

TEST_F(CommitLocksTest, AReadersLockOnTheSideCarLosesNothing) {
  make("x", "old");
  directory_.write("x.b2frame.b2lock", std::vector<std::uint8_t>(16));
  const auto reader = locked("x.b2frame.b2lock", LOCK_EX);
  EXPECT_EQ(overwrite("x", "new"), EBUSY);
  filesystem_->stop();
  EXPECT_EQ(lost(), 0U);
  EXPECT_EQ(on_disk_of("x"), "new");
}

TEST_F(CommitLocksTest, FramesThatAreLockedDoNotKeepOthersFromTheDisk) {
  options_.commit_interval = 0.05;
  options_.lock_timeout = 60;
  remount();
  std::vector<frame::Descriptor> locks;
  std::vector<std::unique_ptr<FileHandle>> handles;
  for (const char* name : {"a", "b", "c", "d"}) {
    make(name, "old");
    const std::string side_car = std::string(name) + ".b2frame.b2lock";
    if (*name == 'd') continue;
    directory_.write(side_car, std::vector<std::uint8_t>(16));
    locks.push_back(locked(side_car, LOCK_EX));
  }
  for (const char* name : {"a", "b", "c", "d"}) {
    handles.push_back(open(name));
    ASSERT_TRUE(write(*handles.back(), 0, "new"));
  }
  EXPECT_TRUE(reaches_disk("d", "new")) << "it waits for the locks of other files";
  EXPECT_EQ(on_disk_of("a"), "old");
  locks.clear();
  for (auto& handle : handles)
    EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(on_disk_of("a"), "new");
}

TEST_F(CommitLocksTest, OneRequestAtATimeWaitsLongForALock) {
  options_.lock_timeout = 600;
  remount();
  make("a", "old");
  make("b", "old");
  auto first = open("a");
  auto second = open("b");
  ASSERT_TRUE(write(*first, 0, "new"));
  ASSERT_TRUE(write(*second, 0, "new"));
  disk_.refused_locks = -1;
  const int tried = disk_.locks_tried;
  std::atomic<bool> waits{true};
  std::thread waiting([&] {
    EXPECT_TRUE(filesystem_->files().flush(*first));
    waits = false;
  });
  while (disk_.locks_tried < tried + 8)
    std::this_thread::yield();
  EXPECT_EQ(errno_of(filesystem_->files().flush(*second)), EBUSY);
  EXPECT_TRUE(waits);
  disk_.refused_locks = 0;
  waiting.join();
  EXPECT_EQ(on_disk_of("a"), "new");
  filesystem_->files().release(std::move(first));
  EXPECT_TRUE(close(std::move(second)));
}

TEST_F(CommitLocksTest, AChangeByAnotherProgramEndsTheWaiting) {
  options_.commit_interval = 0.05;
  remount();
  make("x", "old");
  make("other", "what another program has made of it");
  disk_.refused_locks = -1;
  EXPECT_EQ(overwrite("x", "newer"), EBUSY);
  directory_.write("x.b2frame", test::file_bytes(directory_.path() / "other.b2frame"));
  EXPECT_EQ(content("x"), "what another program has made of it");
  disk_.refused_locks = 0;
  for (int i = 0; i < 3000 && lost() == 0; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  EXPECT_EQ(lost(), 5U);
  EXPECT_EQ(content("x"), "what another program has made of it");
  EXPECT_EQ(overwrite("x", "again"), 0);
}

/// While a commit of "newer" over "old" waits for a lock, another program changes the frame.
class ChangedWhileACommitWaits : public CommitLocksTest {
 protected:
  void commit_while(const std::function<void()>& another_program_changes_it) {
    handle_ = open("x");
    ASSERT_TRUE(write(*handle_, 0, "newer"));
    disk_.refused_locks = -1;
    disk_.at_refused_lock = another_program_changes_it;
    EXPECT_NE(errno_of(filesystem_->files().flush(*handle_)), 0);
    disk_.at_refused_lock = nullptr;
  }
  void TearDown() override {
    disk_.refused_locks = 0;
    handle_.reset();
    CommitLocksTest::TearDown();
  }
  std::unique_ptr<FileHandle> handle_;
};

TEST_F(ChangedWhileACommitWaits, ReadsGetTheChangedFrameAfterTheCommitHasFailed) {
  make("x", "old");
  make("other", "what another program has made of it");
  bool changed = false;
  commit_while([&] {
    if (!std::exchange(changed, true))
      directory_.write("x.b2frame", test::file_bytes(directory_.path() / "other.b2frame"));
  });
  EXPECT_EQ(content("x"), "what another program has made of it");
}

TEST_F(ChangedWhileACommitWaits, ReadsGetTheChangedFrameBeforeTheCommitHasFailed) {
  make("x", "old");
  make("other", "what another program has made of it");
  std::string during_commit;
  commit_while([&] {
    if (!during_commit.empty()) return;
    directory_.write("x.b2frame", test::file_bytes(directory_.path() / "other.b2frame"));
    during_commit = content("x");
  });
  EXPECT_EQ(during_commit, "what another program has made of it");
}

/// No lock keeps programs apart then.
// semantics: P4
TEST_F(CommitLocksTest, WithoutLocksTheHeaderTellsOfAnotherProgramsChange) {
  make("x", "old");
  make("other", "what another program has made of it");
  test::Limits limits;
  limits.no_locks = true;
  test::LimitedFiles lockless(limits);
  stop();
  files_ = &lockless;
  start();
  EXPECT_EQ(overwrite("x", "new"), 0);
  EXPECT_EQ(on_disk_of("x"), "new");
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 0, "mine"));
  directory_.write("x.b2frame", test::file_bytes(directory_.path() / "other.b2frame"));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), ESTALE);
  EXPECT_EQ(errno_of(close(std::move(handle))), ESTALE);
  EXPECT_EQ(content("x"), "what another program has made of it");
  stop();
}

TEST_F(CommitLocksTest, ACleanFileTakesNoLock) {
  make("x", "old");
  auto handle = open("x");
  const int tried = disk_.locks_tried;
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(filesystem_->files().flush(*handle));
  EXPECT_EQ(disk_.locks_tried, tried);
  filesystem_->files().release(std::move(handle));
}

}  // namespace
}  // namespace cframefs::fs
