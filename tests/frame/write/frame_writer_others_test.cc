// Writers and other programs: unfinished commits, foreign changes, locks, readers of older states, unlinking.
#include <cerrno>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "frame/write/frame_space.h"
#include "frame/write/frame_writer.h"
#include "tests/frame/write/frame_writer_fixture.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/memory_meter.h"

namespace cframefs {
namespace {

TEST_F(FrameWriterTest, AnUnfinishedCommitIsTruncated) {
  make_filled(250);
  Bytes bytes = test::file_bytes(path());
  const std::size_t whole = bytes.size();
  bytes.insert(bytes.end(), 100'000, 0xaa);
  temp_.write(name_, bytes);
  const auto writer = open();
  expect_ok(model_.write(*writer, 0, pattern(10, 3)));
  EXPECT_EQ(test::file_bytes(path()).size(), bytes.size()) << "nothing is written before the commit";
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  EXPECT_LT(test::file_bytes(path()).size(), whole + 400);
}

TEST_F(FrameWriterTest, AForeignChangeIsNotOverwritten) {
  make_filled(250);
  const auto writer = open();
  const auto other = open();
  expect_ok(model_.write(*other, 10, pattern(50, 3)));
  expect_ok(other->commit(Durability::durable));
  const Bytes theirs = test::file_bytes(path());
  expect_ok(writer->store(ChunkNumber{0}, test::encoded(pattern(kWrittenChunk, 1))));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::stale);
  EXPECT_EQ(test::file_bytes(path()), theirs);
  check();
}

TEST_F(FrameWriterTest, AFileThatReplacedTheFrameIsNotOverwritten) {
  make_filled(250);
  const auto writer = open();
  std::filesystem::rename(temp_.path() / name_, temp_.path() / "aside");
  make_filled(350);
  expect_ok(writer->resize(0));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::stale);
  check();
}

TEST_F(FrameWriterTest, WaitsForALockThenFailsBusy) {
  make_filled(250);
  temp_.write(name_ + ".b2lock", {});
  const auto side_car = files_.open_named(path() + ".b2lock", O_RDWR);
  ASSERT_TRUE(side_car);
  const frame::Descriptor lock(files_, *side_car);
  ASSERT_EQ(::flock(lock.handle().value, LOCK_SH), 0);
  const auto writer = open({.fresh = false, .stores_chunks = true, .lock_timeout = std::chrono::milliseconds(20)});
  expect_ok(model_.write(*writer, 10, pattern(50, 3)));
  EXPECT_EQ(writer->commit(Durability::durable).error().sys, EBUSY);
  ASSERT_EQ(::flock(lock.handle().value, LOCK_UN), 0);
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  const Bytes counter = test::file_bytes(path() + ".b2lock");
  ASSERT_EQ(counter.size(), 16U);
  EXPECT_EQ(counter[8], 1) << "incremented once, while the lock was held";
}

TEST_F(FrameWriterTest, ASideCarIsMadeOnlyIfLockingIsAskedFor) {
  make_filled(250);
  const auto writer = open();
  // NOLINTBEGIN(concurrency-mt-unsafe): no other thread reads the environment
  ::unsetenv("BLOSC_LOCKING");
  expect_ok(model_.write(*writer, 10, pattern(50, 3)));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_FALSE(std::filesystem::exists(path() + ".b2lock"));
  ::setenv("BLOSC_LOCKING", "1", 1);
  expect_ok(model_.write(*writer, 10, pattern(50, 4)));
  expect_ok(writer->commit(Durability::durable));
  ::unsetenv("BLOSC_LOCKING");
  // NOLINTEND(concurrency-mt-unsafe)
  EXPECT_EQ(test::file_bytes(path() + ".b2lock").size(), 16U);
}

/// Fails the next write of header fields after 26 bytes.
class TearsTheHeader : public test::ForwardingFiles {
 public:
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (at.value != frame::kSwitchBegin || !std::exchange(due_, false)) return ForwardingFiles::pwrite(file, from, at);
    EXPECT_TRUE(ForwardingFiles::pwrite(file, from.first(26), at));
    return codec::io_error(EIO, "pwrite");
  }

 private:
  bool due_ = true;
};

TEST_F(FrameWriterTest, APartialHeaderWriteIsUndone) {
  make_filled(250);
  TearsTheHeader files;
  const auto writer = FrameWriter::open(files, dir_.handle(), name_, nullptr);
  ASSERT_TRUE(writer);
  FrameModel other = model_;
  expect_ok(model_.write(**writer, 10, pattern(500, 3)));
  EXPECT_EQ((*writer)->commit(Durability::durable).error().sys, EIO);
  std::swap(model_, other);
  check();
  std::swap(model_, other);
  expect_ok((*writer)->commit(Durability::durable));
  check(writer->get());
}

/// A program that syncs after every record makes the writer rewrite the last chunk each time.
TEST_F(FrameWriterTest, AReaderKeepsReadingItsState) {
  make_filled(550);
  const auto writer = open();
  const auto old_state = writer->container();
  const FrameModel old_model = model_;
  for (unsigned i = 0; i < 5; ++i) {
    expect_ok(model_.write(*writer, 0, pattern(600, i)));
    expect_ok(writer->commit(Durability::durable));
  }
  expect_ok(frame::FrameSpace(*writer).compact());
  const auto read = test::read_model(*old_state);
  ASSERT_TRUE(read) << codec::describe(read.error());
  EXPECT_TRUE(read->plain == old_model.plain);
}

TEST_F(FrameWriterTest, AnUnlinkedFrameCanBeCommitted) {
  make_filled(550);
  const auto writer = open();
  std::filesystem::remove(temp_.path() / name_);
  writer->unlinked();
  expect_ok(model_.write(*writer, 0, pattern(600, 3)));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_EQ(test::read_model(*writer->container())->plain, model_.plain);
  expect_ok(writer->resize(0));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_EQ(writer->container()->chunk_count(), 0);
  EXPECT_TRUE(std::filesystem::is_empty(temp_.path()));
}

}  // namespace
}  // namespace cframefs
