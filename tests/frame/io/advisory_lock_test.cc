// Concurrent writers of a frame, and programs that only hold locks: one writer commits at a time, and none replaces the
// file of a frame that another writer has open.
#include "frame/io/advisory_lock.h"

#include <cerrno>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>

#include "frame/write/frame_space.h"
#include "frame/write/frame_writer.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using frame::ChunkNumber;
using frame::Durability;
using frame::FrameWriter;
using test::pattern;

constexpr std::int32_t kChunk = 100;
constexpr const char* kName = "frame.b2frame";

/// Calls each function once: `before_switch` before the header fields are written, `at_lock` at the next attempt to
/// lock, `after_refusal` after the next one that is refused, `before_rename` before a file gets a name. Calls
/// `around_locks` before and after each call that takes, releases or examines locks.
class InterruptedFiles : public test::ForwardingFiles {
 public:
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (at.value == frame::kSwitchBegin) {
      if (auto once = std::exchange(before_switch, nullptr)) once();
    }
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    auto held = locking([&] { return ForwardingFiles::try_lock(file, operation); });
    if (operation == LOCK_UN && unlocks_bytes)
      static_cast<void>(ForwardingFiles::try_byte_lock(file, frame::kOpenLockAt, frame::ByteLock::release));
    return held;
  }
  codec::Result<bool> try_byte_lock(frame::OpenFile file, frame::FileOffset at, frame::ByteLock action) override {
    return locking([&] { return ForwardingFiles::try_byte_lock(file, at, action); });
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    if (auto once = std::exchange(before_rename, nullptr)) once();
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  std::function<void()> before_switch;
  std::function<void()> at_lock;
  std::function<void()> after_refusal;
  std::function<void()> before_rename;
  std::function<void()> around_locks;
  bool unlocks_bytes = false;  // flock(2) releases the locks of fcntl(2), as on NFS

 private:
  template <class Call>
  codec::Result<bool> locking(const Call& call) {
    if (auto once = std::exchange(at_lock, nullptr)) once();
    call_around_locks();
    auto held = call();
    call_around_locks();
    if (held && !*held) {
      if (auto once = std::exchange(after_refusal, nullptr)) once();
    }
    return held;
  }
  void call_around_locks() {
    if (!around_locks || std::exchange(is_calling_, true)) return;
    around_locks();
    is_calling_ = false;
  }
  bool is_calling_ = false;
};

class AdvisoryLockTest : public ::testing::Test {
 protected:
  AdvisoryLockTest() {
    const auto fd = files_.open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(files_, fd.value_or(frame::OpenFile{}));
    model_.chunksize = kChunk;
    model_.plain = pattern(250, 1);
    temp_.write(kName, test::plain_frame(model_.plain, kChunk).build());
  }

  std::unique_ptr<FrameWriter> open(frame::WriterOptions options = {},
                                    std::chrono::milliseconds patience = std::chrono::milliseconds(20)) {
    options.lock_timeout = patience;
    auto writer = FrameWriter::open(files_, dir_.handle(), kName, nullptr, options);
    EXPECT_TRUE(writer) << (writer ? "" : codec::describe(writer.error()));
    return writer ? std::move(*writer) : nullptr;
  }
  std::unique_ptr<FrameWriter> open_for_long() {
    frame::WriterOptions options;
    options.stays_open = true;
    return open(options);
  }
  /// Opens the frame as a mount does for the first program that writes it.
  codec::Result<std::unique_ptr<FrameWriter>> open_after_writers(std::chrono::milliseconds patience) {
    frame::WriterOptions options;
    options.stays_open = true;
    options.waits_for_writers = true;
    options.lock_timeout = patience;
    return FrameWriter::open(files_, dir_.handle(), kName, nullptr, options);
  }
  /// Compacts as a program that replaces the file of the frame.
  codec::Result<void> compact_alone(std::chrono::milliseconds patience = std::chrono::milliseconds(20)) {
    frame::WriterOptions options;
    options.alone = true;
    return frame::FrameSpace(*open(options, patience)).compact();
  }
  /// Returns the result of `work`. Calls `call` before and after each call in it that concerns a lock.
  codec::Result<void> calling_around_locks(const std::function<void()>& call,
                                           const std::function<codec::Result<void>()>& work) {
    files_.around_locks = call;
    auto done = work();
    files_.around_locks = nullptr;
    return done;
  }
  static codec::Result<void> commit(FrameWriter& writer, unsigned seed) {
    if (auto stored = writer.store(ChunkNumber{0}, test::encoded(pattern(kChunk, seed))); !stored) return stored;
    return writer.commit(Durability::ordered);
  }
  /// Takes a lock as another program.
  frame::Descriptor lock_of_a_reader(int operation) { return lock_of_another(operation, O_RDONLY); }
  frame::Descriptor lock_of_another(int operation, int access) {
    const auto fd = frame::system_files().open_named((temp_.path() / kName).string(), access);
    EXPECT_TRUE(fd);
    frame::Descriptor reader(frame::system_files(), *fd);
    EXPECT_EQ(::flock(reader.handle().value, operation | LOCK_NB), 0);
    return reader;
  }
  void expect_first_chunk(unsigned seed) {
    const auto opened = test::open_frame((temp_.path() / kName).string());
    ASSERT_TRUE(opened) << codec::describe(opened.error());
    const auto read = test::read_model(**opened);
    ASSERT_TRUE(read) << codec::describe(read.error());
    auto expected = model_.plain;
    const auto first = pattern(kChunk, seed);
    std::copy(first.begin(), first.end(), expected.begin());
    EXPECT_TRUE(read->plain == expected);
  }
  std::size_t files_on_disk() const {
    const std::filesystem::directory_iterator all(temp_.path());
    return static_cast<std::size_t>(std::distance(begin(all), end(all)));
  }

  test::TempDir temp_;
  InterruptedFiles files_;
  frame::Descriptor dir_;
  test::FrameModel model_;
};

TEST_F(AdvisoryLockTest, ReplacingTheFileIsRefusedWhileAMountHasTheFrameOpenForWriting) {
  auto mount = open_for_long();
  const auto refused = compact_alone();
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EBUSY);
  EXPECT_NE(refused.error().reason.find("open for writing in a mount"), std::string::npos);
  ASSERT_TRUE(commit(*mount, 2));
  EXPECT_FALSE(compact_alone()) << "a commit ended the lock";
  ASSERT_TRUE(frame::FrameSpace(*mount).compact());
  EXPECT_FALSE(compact_alone()) << "the new file has no lock";
  mount.reset();
  EXPECT_TRUE(compact_alone());
  expect_first_chunk(2);
}

TEST_F(AdvisoryLockTest, MountsThatHaveTheFrameOpenDoNotBlockEachOthersCommits) {
  const auto one = open_for_long();
  const auto other = open_for_long();
  ASSERT_TRUE(commit(*one, 2));
  expect_first_chunk(2);
  EXPECT_EQ(commit(*other, 3).error().kind, ErrorKind::stale);
  EXPECT_TRUE(commit(*open(), 4));
  expect_first_chunk(4);
  EXPECT_EQ(files_on_disk(), 1U);
}

TEST_F(AdvisoryLockTest, WritersExcludeEachOtherWhileAReaderHoldsALock) {
  const auto reader = lock_of_a_reader(LOCK_SH);
  const auto one = open();
  const auto other = open();
  bool was_interrupted = false;
  files_.before_switch = [&] {
    was_interrupted = true;
    EXPECT_EQ(commit(*other, 3).error().sys, EBUSY);
  };
  ASSERT_TRUE(commit(*one, 2));
  EXPECT_TRUE(was_interrupted);
  expect_first_chunk(2);
  EXPECT_EQ(commit(*other, 3).error().kind, ErrorKind::stale);
  expect_first_chunk(2);
  EXPECT_EQ(files_on_disk(), 1U);
}

TEST_F(AdvisoryLockTest, AGuardLeftByACrashIsTakenOver) {
  temp_.write(frame::guard_path(kName), {});
  const auto reader = lock_of_a_reader(LOCK_SH);
  EXPECT_TRUE(commit(*open(), 2));
  EXPECT_EQ(files_on_disk(), 1U);
}

TEST_F(AdvisoryLockTest, AFrameReplacedBetweenCheckAndSwitchIsStale) {
  const auto reader = lock_of_a_reader(LOCK_SH);
  const auto writer = open();
  files_.before_switch = [&] {
    temp_.write("new", test::plain_frame(pattern(350, 7), kChunk).build());
    std::filesystem::rename(temp_.path() / "new", temp_.path() / kName);
  };
  EXPECT_EQ(commit(*writer, 2).error().kind, ErrorKind::stale);
  EXPECT_EQ(test::file_bytes(temp_.path() / kName), test::plain_frame(pattern(350, 7), kChunk).build());
}

TEST_F(AdvisoryLockTest, AnExclusiveLockOfAReaderIsIgnoredOnlyAtTheLastAttempt) {
  const auto reader = lock_of_a_reader(LOCK_EX);
  const auto writer = open();
  EXPECT_EQ(commit(*writer, 2).error().sys, EBUSY);
  expect_first_chunk(1);
  writer->wait_for_locks(std::chrono::milliseconds(20), true);
  EXPECT_TRUE(commit(*writer, 2));
  expect_first_chunk(2);
}

TEST_F(AdvisoryLockTest, OpeningForWritingWaitsForAnotherWriter) {
  std::optional<frame::Descriptor> other = lock_of_another(LOCK_EX, O_RDWR);
  const auto refused = open_after_writers(std::chrono::milliseconds(20));
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().sys, EBUSY);
  files_.after_refusal = [&] { other.reset(); };
  const auto writer = open_after_writers(std::chrono::minutes(1));
  ASSERT_TRUE(writer) << codec::describe(writer.error());
  EXPECT_TRUE(commit(**writer, 2));
}

TEST_F(AdvisoryLockTest, OpeningForWritingDoesNotWaitForAReader) {
  const auto reader = lock_of_a_reader(LOCK_EX);
  const auto begin = std::chrono::steady_clock::now();
  EXPECT_TRUE(open_after_writers(std::chrono::hours(1)));
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::minutes(30));
}

// Otherwise what a program writes next would be lost.
TEST_F(AdvisoryLockTest, AFrameReplacedWhileItIsOpenedForWritingIsStale) {
  const auto other = open_for_long();
  ASSERT_TRUE(commit(*other, 2));
  files_.at_lock = [&] { EXPECT_TRUE(frame::FrameSpace(*other).compact()); };
  const auto late = open_after_writers(std::chrono::milliseconds(20));
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().kind, ErrorKind::stale);
  EXPECT_TRUE(open_after_writers(std::chrono::milliseconds(20)));
}

TEST_F(AdvisoryLockTest, InNoInstantOfACommitDoesAnotherMountReplaceTheFile) {
  const auto one = open_for_long();
  const auto other = open_for_long();
  const ino_t file = files_.status_at(dir_.handle(), kName)->st_ino;
  int instants = 0;
  const auto compact_one = [&] {
    ++instants;
    EXPECT_FALSE(frame::FrameSpace(*one).compact());
  };
  EXPECT_TRUE(calling_around_locks(compact_one, [&] { return commit(*other, 2); }));
  EXPECT_GE(instants, 4) << "before and after the lock is taken, and released";
  EXPECT_EQ(files_.status_at(dir_.handle(), kName)->st_ino, file);
  expect_first_chunk(2);
}

TEST_F(AdvisoryLockTest, OfTwoMountsThatCompactAFrameAtOnceNoneReplacesTheFileOfTheOther) {
  auto one = open_for_long();
  auto other = open_for_long();
  int instants = 0;
  const auto compact_other = [&] {
    ++instants;
    const auto done = frame::FrameSpace(*other).compact();
    ASSERT_FALSE(done);
    EXPECT_EQ(done.error().sys, EBUSY);
  };
  const auto done = calling_around_locks(compact_other, [&] { return frame::FrameSpace(*one).compact(); });
  EXPECT_EQ(done.error().sys, EBUSY);
  EXPECT_GE(instants, 6) << "before and after the lock is taken, others are asked for, and it is released";
  EXPECT_TRUE(commit(*one, 2));
}

TEST_F(AdvisoryLockTest, AWriterThatWaitedInVainStaysOpen) {
  auto mount = open_for_long();
  std::optional<frame::Descriptor> other = lock_of_another(LOCK_EX, O_RDWR);
  EXPECT_EQ(commit(*mount, 2).error().sys, EBUSY);
  other.reset();
  EXPECT_EQ(compact_alone().error().sys, EBUSY) << "the mount has the frame open";
}

TEST_F(AdvisoryLockTest, AMountCommitsWhileAnotherProgramWaitsUntilItIsAlone) {
  auto mount = open_for_long();
  bool committed = false;
  int instants = 0;
  const auto commit_once = [&] {
    // After the third call, which releases the lock: the first took it, and the second met the open lock.
    if (++instants == 6) committed = commit(*mount, 2).has_value();
    if (instants == 12) mount.reset();  // the second time
  };
  const auto done = calling_around_locks(commit_once, [&] { return compact_alone(std::chrono::minutes(1)); });
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, ErrorKind::stale) << "it sees the commit";
  EXPECT_GE(instants, 12) << "it tries again";
  EXPECT_TRUE(committed);
  expect_first_chunk(2);
}

TEST_F(AdvisoryLockTest, OnNfsAFrameStaysOpenAfterItsLocksAreReleased) {
  files_.unlocks_bytes = true;
  const auto mount = open_after_writers(std::chrono::milliseconds(20));
  ASSERT_TRUE(mount);
  EXPECT_EQ(compact_alone().error().sys, EBUSY);
  ASSERT_TRUE(commit(**mount, 2));
  EXPECT_EQ(compact_alone().error().sys, EBUSY) << "after a commit";
  EXPECT_TRUE(frame::FrameSpace(**mount).compact());
  EXPECT_EQ(compact_alone().error().sys, EBUSY) << "after a compaction";
}

// A lock of fcntl(2) on the whole file, which only a program that may write it can hold.
TEST_F(AdvisoryLockTest, OpeningForWritingWaitsForALockOfFcntl) {
  std::optional<frame::Descriptor> other(frame::Descriptor(
      frame::system_files(), *frame::system_files().open_named((temp_.path() / kName).string(), O_RDWR)));
  struct flock lock {};
  lock.l_type = F_WRLCK;
  ASSERT_EQ(::fcntl(other->handle().value, F_OFD_SETLK, &lock), 0);
  EXPECT_EQ(open_after_writers(std::chrono::milliseconds(20)).error().sys, EBUSY);
  files_.after_refusal = [&] { other.reset(); };
  EXPECT_TRUE(open_after_writers(std::chrono::minutes(1)));
}

// Another program may open the file as soon as it has the name.
TEST_F(AdvisoryLockTest, ANewFileHasTheOpenLockBeforeItHasTheName) {
  auto mount = open_for_long();
  ASSERT_TRUE(commit(*mount, 2));
  files_.before_rename = [&] {
    int locked = 0;
    for (const auto& entry : std::filesystem::directory_iterator(temp_.path())) {
      const auto fd = frame::system_files().open_named(entry.path().string(), O_RDWR);
      ASSERT_TRUE(fd);
      const frame::Descriptor file(frame::system_files(), *fd);
      locked += *files_.try_byte_lock(file.handle(), frame::kOpenLockAt, frame::ByteLock::examine) ? 0 : 1;
    }
    EXPECT_EQ(locked, 2) << "the old file and the new one";
  };
  ASSERT_TRUE(frame::FrameSpace(*mount).compact());
  EXPECT_FALSE(files_.before_rename) << "was called";
}

/// The frame belongs to another user than the files beside it.
class FrameOfAnotherUser final : public test::ForwardingFiles {
 public:
  explicit FrameOfAnotherUser(ino_t frame) : frame_(frame) {}
  codec::Result<struct stat> status(frame::OpenFile file) override {
    auto found = ForwardingFiles::status(file);
    if (found && found->st_ino == frame_) {
      ++found->st_uid;
      ++found->st_gid;
    }
    return found;
  }

 private:
  const ino_t frame_;
};

TEST_F(AdvisoryLockTest, ASideCarThatTheFramesOwnerMayNotWriteIsNotWritten) {
  const test::Bytes secret(16, 7);
  const auto side_car = temp_.write(frame::side_car_path(kName), secret);
  FrameOfAnotherUser files(files_.status_at(dir_.handle(), kName)->st_ino);
  for (const bool may_write : {false, true}) {
    std::filesystem::permissions(side_car, std::filesystem::perms(may_write ? 0666 : 0644));
    auto writer = FrameWriter::open(files, dir_.handle(), kName, nullptr);
    ASSERT_TRUE(writer);
    EXPECT_TRUE(commit(**writer, may_write ? 2 : 1));
    EXPECT_EQ(test::file_bytes(side_car) != secret, may_write) << "the counter in the side-car";
  }
  expect_first_chunk(2);
}

TEST_F(AdvisoryLockTest, ASideCarLockedOnlyByReadersIsIgnoredAtTheLastAttempt) {
  const auto side_car = temp_.write(frame::side_car_path(kName), test::Bytes(16)).string();
  for (const int how : {O_RDONLY, O_RDWR}) {
    const frame::Descriptor holder(frame::system_files(), *frame::system_files().open_named(side_car, how));
    ASSERT_EQ(::flock(holder.handle().value, LOCK_SH), 0);
    const auto writer = open();
    const unsigned seed = how == O_RDONLY ? 2 : 3;
    writer->wait_for_locks(std::chrono::milliseconds(20), false);
    EXPECT_EQ(commit(*writer, seed).error().sys, EBUSY);
    writer->wait_for_locks(std::chrono::milliseconds(20), true);
    if (how == O_RDONLY) {
      EXPECT_TRUE(commit(*writer, seed));
    } else {
      EXPECT_EQ(commit(*writer, seed).error().sys, EBUSY) << "the holder may be writing the frame";
    }
    expect_first_chunk(2);
  }
}

TEST_F(AdvisoryLockTest, ALockOfAnActiveWriterIsNotIgnored) {
  const auto reader = lock_of_a_reader(LOCK_EX);
  const auto writer = open();
  writer->wait_for_locks(std::chrono::milliseconds(20), true);
  // The file grows while the writer waits for its lock.
  const std::string path = (temp_.path() / kName).string();
  files_.at_lock = [&] { std::filesystem::resize_file(path, std::filesystem::file_size(path) + 1); };
  EXPECT_EQ(commit(*writer, 2).error().sys, EBUSY);
}

}  // namespace
}  // namespace cframefs
