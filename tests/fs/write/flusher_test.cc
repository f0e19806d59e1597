// When dirty files are committed: by their age, by the total of dirty bytes, and again after a failed commit. The tests
// set the clock.
#include "fs/write/flusher.h"

#include <cerrno>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "fs/util/worker_pool.h"
#include "tests/fs/written_filesystem.h"
#include "tests/support/fake_write_back_host.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kFlushedChunk = 4096;
constexpr auto kInterval = 5s;

class Host final : public test::FakeWriteBackHost {
 public:
  explicit Host(Flusher& flusher) : FakeWriteBackHost(chunks_of), flusher_(flusher) {}
  void much_is_dirty() override { flusher_.wake(); }
  void make_room(std::uint64_t most) override { flusher_.commit_largest(most); }

 private:
  static codec::Result<std::shared_ptr<const frame::FlatView>> chunks_of(
      std::shared_ptr<const frame::Container> container) {
    return frame::make_view(std::move(container), frame::ArrayForm::chunks, false);
  }
  Flusher& flusher_;
};

class FlusherTest : public ::testing::Test {
 protected:
  FlusherTest() {
    const auto fd = disk_.open_named(directory_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = std::make_shared<const frame::Descriptor>(disk_, fd.value_or(frame::OpenFile{}));
    shared_.interval = kInterval;
    shared_.clock = [this] { return now_; };
    shared_.dirty_limit = 64 * (kFlushedChunk + DirtyChunk::kOverhead);
    workers_.start(2);
  }
  ~FlusherTest() override {
    files_.clear();
    workers_.stop();
  }

  WriteBack& make(const std::string& name) {
    frame::NewFrame like;
    like.chunksize = kFlushedChunk;
    directory_.write(name, frame::empty_frame(like));
    const auto frame = std::make_shared<const frame::Descriptor>(disk_, *disk_.open_at(dir_->handle(), name, O_PATH));
    auto opened = WriteBack::open(shared_, std::make_unique<Host>(flusher_), {{dir_, name, name}, frame, true});
    EXPECT_TRUE(opened) << opened.error().reason;
    files_[name] = *opened;
    flusher_.add(*opened);
    return **opened;
  }
  void append(const std::string& name, std::size_t length) {
    const std::vector<std::uint8_t> bytes(length, 'x');
    const auto done = files_.at(name)->write(std::nullopt, bytes);
    EXPECT_TRUE(done) << done.error().reason;
  }
  std::uint64_t on_disk(const std::string& name) {
    const auto frame = test::open_frame((directory_.path() / name).string());
    EXPECT_TRUE(frame);
    return frame ? (*frame)->parameters().nbytes : 0;
  }

  test::TempDir directory_;
  FaultyDisk disk_;
  std::shared_ptr<const frame::Descriptor> dir_;
  Statistics statistics_;
  DedupLogger once_;
  ReadPath read_path_{1 << 20, statistics_.decoding, once_, 2};
  WorkerPool workers_;
  ChunkEncoders encoders_{workers_, 2, statistics_.writing};
  WriteBackShared shared_{
      disk_, read_path_, encoders_, statistics_.writing, once_, std::make_shared<frame::IndexCache>()};
  Flusher flusher_{shared_};
  Flusher::Time now_{1000s};
  std::map<std::string, std::shared_ptr<WriteBack>> files_;
};

TEST_F(FlusherTest, DataThatAreTooOldAreCommitted) {
  make("x");
  append("x", 10);
  now_ += kInterval - 1ms;
  flusher_.commit_due();
  EXPECT_EQ(on_disk("x"), 0U);
  now_ += 1ms;
  flusher_.commit_due();
  EXPECT_EQ(on_disk("x"), 10U);
}

TEST_F(FlusherTest, FilesThatGrowSlowlyAreCommittedInTimeHoweverManyTheyAre) {
  // More chunks than may be dirty, so that each write needs room.
  std::vector<std::string> names;
  for (int i = 0; i < 60; ++i) {
    names.push_back("log" + std::to_string(i));
    make(names.back());
  }
  std::vector<std::uint64_t> written;  // in total, for each step
  for (int step = 0; step < 40; ++step) {
    for (const std::string& name : names)
      append(name, 11);
    written.push_back(static_cast<std::uint64_t>(step + 1) * 11);
    flusher_.commit_due();
    EXPECT_LE(shared_.dirty_bytes, shared_.dirty_limit);
    if (step >= 25) {
      // Older than the interval: 25 steps of 0.2 s.
      for (const std::string& name : names)
        ASSERT_GE(on_disk(name), written[static_cast<std::size_t>(step) - 25]) << name << ", step " << step;
    }
    now_ += 200ms;
  }
}

TEST_F(FlusherTest, AChunkThatIsHeldBackKeepsItsAge) {
  WriteBack& file = make("x");
  append("x", 10);
  now_ += 2500ms;
  ASSERT_TRUE(file.commit(frame::Durability::ordered, CommitExtent::complete));
  EXPECT_EQ(on_disk("x"), 0U);
  now_ += 2500ms;
  ASSERT_TRUE(file.commit(frame::Durability::ordered, CommitExtent::complete));
  EXPECT_EQ(on_disk("x"), 10U);
}

TEST_F(FlusherTest, TheLargestFilesMakeRoomWhicheverIsWritten) {
  make("large");
  make("small");
  append("large", 30 * kFlushedChunk + 10);
  append("small", 10);
  EXPECT_EQ(on_disk("large"), 0U);
  // A file with little dirty does not wait for the others.
  append("small", kFlushedChunk);
  EXPECT_EQ(on_disk("large"), 0U);
  EXPECT_LE(shared_.dirty_bytes, shared_.dirty_limit / 2 + kFlushedChunk + DirtyChunk::kOverhead);
  append("small", 4 * kFlushedChunk);
  EXPECT_GE(on_disk("large"), 30 * kFlushedChunk);
  EXPECT_EQ(on_disk("small"), 0U);
  EXPECT_LE(shared_.dirty_bytes, shared_.dirty_limit / 2);
}

TEST_F(FlusherTest, ManyOpenFilesHoldNoMoreThanMayBeDirty) {
  for (int i = 0; i < 300; ++i) {
    const std::string name = "f" + std::to_string(i);
    make(name);
    append(name, 1);
    // Half of the limit, and the reserve for files with little dirty.
    ASSERT_LE(shared_.dirty_bytes, shared_.dirty_limit / 2 + shared_.dirty_limit / 8 + kFlushedChunk) << name;
  }
}

TEST_F(FlusherTest, AFailedCommitIsRetriedAfterPausesThatGrow) {
  make("x");
  append("x", 10);
  now_ += kInterval;
  disk_.write_error = ENOSPC;
  std::vector<std::chrono::milliseconds> pauses;
  auto last = now_;
  for (int i = 0; i < 20'000 && pauses.size() < 9; ++i, now_ += 10ms) {
    const std::uint64_t before = statistics_.writing.failed_commits;
    flusher_.commit_due();
    if (statistics_.writing.failed_commits == before) continue;
    pauses.push_back(std::chrono::duration_cast<std::chrono::milliseconds>(now_ - last));
    last = now_;
  }
  EXPECT_EQ(pauses, (std::vector<std::chrono::milliseconds>{0ms, 500ms, 1s, 2s, 4s, 8s, 16s, 30s, 30s}));
  disk_.write_error = 0;
  now_ += 30s;
  flusher_.commit_due();
  EXPECT_EQ(on_disk("x"), 10U);
}

TEST_F(FlusherTest, AKeptFileIsCommittedBeforeItIsOld) {
  make("x");
  append("x", 10);
  int attempts = 0;
  auto file = std::exchange(files_["x"], nullptr);
  flusher_.keep(file, [&attempts](const codec::Result<void>& done) { attempts += done ? 1 : 0; });
  const std::weak_ptr<WriteBack> known = file;
  file.reset();
  flusher_.commit_due();
  EXPECT_EQ(attempts, 1);
  EXPECT_EQ(on_disk("x"), 10U);
  flusher_.let_go(known.lock());
  EXPECT_TRUE(known.expired());
}

}  // namespace
}  // namespace cframefs::fs
