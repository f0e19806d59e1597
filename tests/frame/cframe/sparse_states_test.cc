// A reader of an old state of a sparse frame reads the chunks of that state while the writer commits. The chunk files
// of the state are removed after its last reader is gone.
#include <algorithm>
#include <filesystem>
#include <numeric>
#include <random>
#include <set>
#include <thread>

#include <gtest/gtest.h>
#include <sys/file.h>

#include "frame/open/open.h"
#include "frame/write/frame_space.h"
#include "tests/frame/write/written_sparse_frame.h"
#include "tests/support/failing_files.h"
#include "tests/support/forwarding_files.h"

namespace cframefs {
namespace {

using frame::Durability;
using test::Bytes;
using test::FrameModel;
using test::kSparseChunk;
using test::pattern;

using State = std::shared_ptr<const frame::Container>;

class SparseStatesTest : public test::WrittenSparseFrame {
 protected:
  static constexpr std::size_t kFiles = 1 + 6;  // index and chunks

  /// A state and its content.
  struct Held {
    State state;
    FrameModel model;
  };

  Held hold(const frame::FrameWriter& writer) { return {writer.container(), model_}; }

  /// Replaces all chunks and commits.
  void rewrite(frame::FrameWriter& writer, unsigned seed) {
    expect_ok(model_.write(writer, 0, pattern(model_.plain.size(), seed)));
    expect_ok(writer.commit(Durability::durable));
  }

  static void expect_readable(const Held& held, const std::string& what) {
    const auto read = test::read_model(*held.state);
    ASSERT_TRUE(read) << what << ": " << codec::describe(read.error());
    EXPECT_TRUE(read->plain == held.model.plain) << what << ": bytes of another state";
  }

  std::set<std::string> chunk_files() const {
    std::set<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(directory())) {
      if (entry.path().extension() == ".chunk") names.insert(entry.path().filename());
    }
    return names;
  }
};

TEST_F(SparseStatesTest, AnOldStateIsReadableAfterManyCommits) {
  for (const int commits : {1, 2, 3, 10}) {
    make({0, 1, 2, 3, 4, 5}, 550);
    const auto writer = open();
    const Held old = hold(*writer);
    for (int i = 0; i < commits; ++i) {
      rewrite(*writer, 10 + static_cast<unsigned>(i));
      expect_readable(old, std::to_string(i + 1) + " commits later");
      if (HasFatalFailure()) return;
      check();
    }
  }
}

TEST_F(SparseStatesTest, EveryHeldStateIsReadable) {
  const auto writer = open();
  std::vector<Held> held;
  std::mt19937 random(1);
  for (unsigned step = 0; step < 60; ++step) {
    held.push_back(hold(*writer));
    const std::size_t size = model_.plain.size();
    if (step % 5 == 4) {
      expect_ok(model_.resize(*writer, random() % 900));
    } else {
      expect_ok(model_.write(*writer, random() % (size + 1), pattern(1 + random() % 250, step)));
    }
    expect_ok(writer->commit(step % 2 == 0 ? Durability::durable : Durability::ordered));
    if (random() % 2 == 0) held.erase(held.begin() + static_cast<std::ptrdiff_t>(random() % held.size()));
    for (const Held& one : held)
      expect_readable(one, "step " + std::to_string(step));
    if (HasFailure()) return;
  }
}

/// Records the names of created chunk files.
class RecordingFiles : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    if (path.ends_with(".chunk")) made.push_back(path);
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  std::vector<std::string> made;
};

TEST_F(SparseStatesTest, NoFileNumberIsReused) {
  RecordingFiles files;
  const auto writer = open(files);
  for (unsigned i = 0; i < 10; ++i)
    rewrite(*writer, i);
  EXPECT_EQ(files.made.size(), 60U);
  EXPECT_EQ(std::set<std::string>(files.made.begin(), files.made.end()).size(), files.made.size());
  check();
}

TEST_F(SparseStatesTest, TheNextCommitRemovesFilesOfAStateWithoutReaders) {
  const auto writer = open();
  Held old = hold(*writer);
  for (unsigned i = 0; i < 4; ++i)
    rewrite(*writer, i);
  EXPECT_EQ(file_count(), kFiles + 6) << "the states in between have no reader";
  old.state.reset();
  rewrite(*writer, 7);
  EXPECT_EQ(file_count(), kFiles);
  check();
}

TEST_F(SparseStatesTest, TheLastWriterRemovesFilesOfAStateWithoutReaders) {
  auto writer = open();
  Held old = hold(*writer);
  rewrite(*writer, 1);
  old.state.reset();
  EXPECT_EQ(file_count(), kFiles + 6);
  writer.reset();
  EXPECT_EQ(file_count(), kFiles);
  check();
}

TEST_F(SparseStatesTest, TheLastReaderRemovesFilesOfAStateWithoutWriter) {
  auto writer = open();
  Held first = hold(*writer);
  rewrite(*writer, 1);
  Held second = hold(*writer);
  rewrite(*writer, 2);
  writer.reset();
  EXPECT_EQ(file_count(), kFiles + 12);
  expect_readable(first, "after the writer");
  second.state.reset();
  expect_readable(first, "after the state that follows it");
  EXPECT_EQ(file_count(), kFiles + 6);
  first.state.reset();
  EXPECT_EQ(file_count(), kFiles);
  check();
}

TEST_F(SparseStatesTest, StatesThatEndInSeveralThreadsAtOnceLeaveNoFiles) {
  test::FailingFiles files;
  auto writer = open(files);
  Held first = hold(*writer);
  rewrite(*writer, 1);
  Held second = hold(*writer);
  rewrite(*writer, 2);
  writer.reset();
  // One thread is blocked in the removal of its state's files while the state of the other thread ends.
  files.count([](const test::FileCall& call) { return call.kind == test::FileCall::Kind::remove; });
  files.hold(1);
  std::thread one([&] { second.state.reset(); });
  ASSERT_TRUE(files.wait_until_held());
  std::thread other([&] { first.state.reset(); });
  std::this_thread::sleep_for(std::chrono::milliseconds(50));
  files.release();
  one.join();
  other.join();
  EXPECT_EQ(file_count(), kFiles);
  check();
}

/// Counts the files that are removed under one hold of a lock.
class CountedRemovals : public test::ForwardingFiles {
 public:
  codec::Result<bool> try_lock(frame::OpenFile file, int operation) override {
    if ((operation & LOCK_UN) != 0) removed_ = 0;
    return ForwardingFiles::try_lock(file, operation);
  }
  codec::Result<void> remove_at(frame::OpenFile dir, const std::string& path, bool directory) override {
    ++all_;
    most_ = std::max(most_, ++removed_);
    return ForwardingFiles::remove_at(dir, path, directory);
  }
  std::size_t all() const { return all_; }
  std::size_t most() const { return most_; }

 private:
  std::size_t removed_ = 0;
  std::size_t all_ = 0;
  std::size_t most_ = 0;
};

TEST_F(SparseStatesTest, TheLockIsGivenBackBetweenPortionsOfManyFiles) {
  constexpr std::size_t kChunks = 600;
  std::vector<std::int64_t> entries(kChunks);
  std::iota(entries.begin(), entries.end(), 0);
  make(entries, kChunks * kSparseChunk);
  CountedRemovals files;
  auto writer = open(files);
  Held old = hold(*writer);
  rewrite(*writer, 1);
  writer.reset();
  const std::size_t before = files.all();
  old.state.reset();
  EXPECT_EQ(files.all() - before, kChunks);
  EXPECT_EQ(file_count(), 1 + kChunks);
  // A writer waits for the lock for a few seconds only.
  EXPECT_LE(files.most(), 256U);
  check();
}

TEST_F(SparseStatesTest, ALaterWriterKeepsHeldStates) {
  frame::WriterOptions options;
  options.sparse_registry = std::make_shared<frame::SparseRegistry>();
  const auto open_one = [&] {
    auto writer = frame::FrameWriter::open(files(), dir_.handle(), "x.b2frame", nullptr, options);
    EXPECT_TRUE(writer);
    return writer ? std::move(*writer) : nullptr;
  };
  Held old;
  Held between;
  for (unsigned life = 0; life < 3; ++life) {
    const auto writer = open_one();
    if (life == 0) old = hold(*writer);
    rewrite(*writer, 10 + life);
    if (life == 0) between = hold(*writer);
    rewrite(*writer, 20 + life);
    expect_readable(old, "life " + std::to_string(life));
    expect_readable(between, "between, life " + std::to_string(life));
  }
  EXPECT_EQ(file_count(), kFiles + 12);
  const auto writer = open_one();
  old.state.reset();
  rewrite(*writer, 30);
  EXPECT_EQ(file_count(), kFiles + 6);
  between.state.reset();
  rewrite(*writer, 31);
  EXPECT_EQ(file_count(), kFiles);
  check();
}

TEST_F(SparseStatesTest, AFileThatReusesTheNumberOfADeadOneStays) {
  auto writer = open();
  Held old = hold(*writer);
  rewrite(*writer, 1);
  writer.reset();
  // Another program has removed the file and reused its number.
  const auto name = directory() / *frame::chunk_file_name(0);
  std::filesystem::remove(name);
  temp_.write("x.b2frame/" + *frame::chunk_file_name(0), Bytes(132, 7));
  old.state.reset();
  EXPECT_TRUE(std::filesystem::exists(name));
  EXPECT_EQ(file_count(), kFiles + 1);
}

TEST_F(SparseStatesTest, FilesStayIfTheNewIndexMayNotBeDurable) {
  class FailsDirectories : public test::ForwardingFiles {
   public:
    codec::Result<void> sync(frame::OpenFile file, bool data_only) override {
      const auto synced = status(file);
      if (failing && synced && S_ISDIR(synced->st_mode) && ++directories == 2) return codec::io_error(EIO, "sync");
      return ForwardingFiles::sync(file, data_only);
    }
    bool failing = true;
    int directories = 0;
  };
  FailsDirectories files;
  const std::set<std::string> before = chunk_files();
  {
    const auto writer = open(files);
    expect_ok(model_.write(*writer, 0, pattern(550, 3)));
    EXPECT_FALSE(writer->commit(Durability::durable));
  }
  const std::set<std::string> after = chunk_files();
  EXPECT_TRUE(std::includes(after.begin(), after.end(), before.begin(), before.end()));
}

TEST_F(SparseStatesTest, CompactingKeepsTheFilesOfHeldStates) {
  const auto writer = open();
  Held old = hold(*writer);
  rewrite(*writer, 1);
  expect_ok(frame::FrameSpace(*writer).compact());
  expect_readable(old, "after compact");
  old.state.reset();
  expect_ok(frame::FrameSpace(*writer).compact());
  EXPECT_EQ(file_count(), kFiles);
  check();
}

/// Opens the frame as programs do that read without a writer: `cframe cat`, `unpack`, `verify`.
TEST_F(SparseStatesTest, AReaderByPathReadsOneStateDuringCommits) {
  const auto open_by_path = [&] {
    auto opened = frame::open_path(files(), directory().string(), nullptr);
    EXPECT_TRUE(opened) << codec::describe(opened.error());
    return Held{opened ? *opened : nullptr, model_};
  };
  auto writer = open();
  Held reader = open_by_path();
  for (unsigned i = 0; i < 3; ++i) {
    rewrite(*writer, i);
    expect_readable(reader, "commit " + std::to_string(i));
  }
  Held later = open_by_path();
  reader.state.reset();
  rewrite(*writer, 8);
  expect_readable(later, "the state of later");
  later.state.reset();
  rewrite(*writer, 9);
  EXPECT_EQ(file_count(), kFiles);
  Held last = open_by_path();
  rewrite(*writer, 10);
  writer.reset();
  expect_readable(last, "after the writer");
}

TEST_F(SparseStatesTest, WithoutLocksReadsOfAChangedFrameAreStale) {
  class KnowsNoLocks : public test::ForwardingFiles {
   public:
    codec::Result<bool> try_lock(frame::OpenFile, int) override { return codec::io_error(EOPNOTSUPP, "flock"); }
  };
  KnowsNoLocks files;
  const auto writer = open(files);
  const auto reader = frame::open_path(files, directory().string(), nullptr);
  ASSERT_TRUE(reader);
  EXPECT_TRUE(test::read_model(**reader));
  for (unsigned i = 0; i < 3; ++i) {
    rewrite(*writer, i);
    const auto read = test::read_model(**reader);
    ASSERT_FALSE(read);
    EXPECT_EQ(read.error().kind, codec::ErrorKind::stale) << codec::describe(read.error());
  }
}

TEST_F(SparseStatesTest, AMissingChunkFileOfTheCurrentStateIsCorruption) {
  std::filesystem::remove(directory() / *frame::chunk_file_name(2));
  const auto opened = frame::open_path(files(), directory().string(), nullptr);
  ASSERT_TRUE(opened);
  const auto read = test::read_chunk(**opened, 2);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, codec::ErrorKind::corruption);
}

}  // namespace
}  // namespace cframefs
