// Every kind of change that a writer makes, read back.
#include "frame/write/frame_writer.h"

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

#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_space.h"
#include "tests/frame/write/frame_writer_fixture.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/memory_meter.h"

namespace cframefs {
namespace {

TEST_F(FrameWriterTest, AnEmptyFrameIsAFrame) {
  make_empty();
  const auto opened = test::open_frame(path());
  ASSERT_TRUE(opened) << codec::describe(opened.error());
  EXPECT_EQ((*opened)->chunk_count(), 0);
  EXPECT_EQ((*opened)->parameters().chunksize, kWrittenChunk);
  EXPECT_EQ((*opened)->parameters().compcode, 5);
  EXPECT_EQ(test::file_bytes(path()).size(), 132U);
}

TEST_F(FrameWriterTest, ChunksAreAppendedToAnEmptyFrame) {
  make_empty();
  const auto writer = open();
  expect_ok(model_.write(*writer, 0, pattern(250, 7)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, AppendingInManyCommits) {
  make_empty();
  const auto writer = open();
  for (unsigned i = 0; i < 60; ++i) {
    expect_ok(model_.write(*writer, model_.plain.size(), pattern(37, i)));
    expect_ok(writer->commit(i % 2 == 0 ? Durability::durable : Durability::ordered));
    check(writer.get());
  }
}

TEST_F(FrameWriterTest, ChunksAreReplaced) {
  make_filled(550);
  const auto writer = open();
  expect_ok(model_.write(*writer, 120, pattern(200, 9)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  EXPECT_GT(frame::FrameSpace(*writer).dead_bytes(), 3 * 132U);
}

TEST_F(FrameWriterTest, ZerosAreNotStored) {
  make_filled(550);
  const auto writer = open();
  expect_ok(model_.write(*writer, 100, Bytes(300, 0)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  const auto location = writer->container()->locate_chunk(ChunkNumber{2});
  ASSERT_TRUE(location);
  EXPECT_EQ(location->special, codec::SpecialValue::zeros);
}

TEST_F(FrameWriterTest, ShrinkingDropsChunks) {
  make_filled(550);
  const auto writer = open();
  for (const std::size_t size : {501U, 450U, 400U, 37U}) {
    expect_ok(model_.resize(*writer, size));
    expect_ok(writer->commit(Durability::durable));
    check(writer.get());
  }
}

TEST_F(FrameWriterTest, GrowingAddsZeroChunks) {
  make_filled(550);
  const auto writer = open();
  const std::uint64_t before = test::file_bytes(path()).size();
  expect_ok(model_.resize(*writer, 100'030));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  EXPECT_LT(test::file_bytes(path()).size(), before + 12'000);
  expect_ok(model_.resize(*writer, 100'090));  // the last chunk is special, so it need not be stored again
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, ShrinkingAndGrowingInOneCommitLeavesZeros) {
  make_filled(550);
  const auto writer = open();
  expect_ok(model_.resize(*writer, 200));
  expect_ok(model_.resize(*writer, 550));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, TheLastChunkIsRemovedAndAddedAgain) {
  make_filled(250);
  const auto writer = open();
  expect_ok(model_.resize(*writer, 0));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  EXPECT_EQ(test::file_bytes(path()).size(), 132U);
  expect_ok(model_.write(*writer, 0, pattern(130, 4)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, AHoleOfManyChunksIsAShortIndex) {
  make_empty();
  const auto writer = open();
  model_.plain.resize(std::size_t{kWrittenChunk} * 1'000'000);
  expect_ok(writer->resize(model_.plain.size()));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_LT(test::file_bytes(path()).size(), 400U);
  EXPECT_EQ(writer->container()->chunk_count(), 1'000'000);
  expect_ok(model_.write(*writer, std::size_t{kWrittenChunk} * 500'000, pattern(kWrittenChunk, 3)));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_LT(test::file_bytes(path()).size(), 100'000U);
  const auto chunk = test::read_chunk(*writer->container(), 500'000);
  ASSERT_TRUE(chunk);
  EXPECT_EQ(*chunk, pattern(kWrittenChunk, 3));
}

/// 40 bytes of index can represent 2^26 chunks. A change of such a frame must not take memory for each chunk.
TEST_F(FrameWriterTest, AnIndexOfVeryManyChunksTakesLittleMemory) {
  constexpr std::int64_t kMany = (std::int64_t{1} << 26) - 8;
  test::FrameBuilder builder;
  builder.chunksize = kWrittenChunk;
  builder.nbytes = kMany * kWrittenChunk;
  Bytes zeros(8);
  codec::store_le(zeros.data(), frame::layout::kZerosEntry);
  builder.index = test::repeated_chunk(zeros, kMany * 8);
  temp_.write(name_, builder.build());
  const std::size_t before = test::reset_peak();
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{kMany / 2}, test::encoded(pattern(kWrittenChunk, 1))));
  expect_ok(writer->commit(Durability::durable));
  expect_ok(frame::FrameSpace(*writer).compact());
  EXPECT_LT(test::peak_bytes() - before, std::size_t{96} << 20);
  EXPECT_EQ(writer->container()->chunk_count(), kMany);
  EXPECT_EQ(test::read_chunk(*writer->container(), kMany / 2).value(), pattern(kWrittenChunk, 1));
  EXPECT_EQ(test::read_chunk(*writer->container(), kMany - 1).value(), Bytes(kWrittenChunk));
}

TEST_F(FrameWriterTest, DeadBytesOfEarlierWritersAreCounted) {
  make_filled(550);
  const std::uint64_t packed = test::file_bytes(path()).size();
  for (unsigned i = 0; i < 20; ++i) {
    const auto writer = open();
    expect_ok(model_.write(*writer, 500, pattern(50, i)));
    expect_ok(writer->commit(Durability::durable));
  }
  const auto writer = open({.checksums = frame::Checksums::keep});
  const std::uint64_t length = test::file_bytes(path()).size();
  EXPECT_EQ(frame::FrameSpace(*writer).dead_bytes(), length - packed);
  expect_ok(frame::FrameSpace(*writer).compact());
  EXPECT_EQ(frame::FrameSpace(*writer).dead_bytes(), 0U);
  EXPECT_EQ(test::file_bytes(path()).size(), packed);
}

TEST_F(FrameWriterTest, MetalayersOfBothKinds) {
  make_filled(250);
  const auto writer = open();
  expect_ok(model_.set_vlmetalayer(*writer, "notes", pattern(90, 2)));
  expect_ok(model_.set_vlmetalayer(*writer, "none", {}));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  expect_ok(model_.set_vlmetalayer(*writer, "notes", pattern(9, 3)));
  expect_ok(model_.remove_vlmetalayer(*writer, "none"));
  expect_ok(model_.set_metalayer(*writer, "units", pattern(20, 3)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  const auto inode = files_.status_at(dir_.handle(), name_)->st_ino;
  expect_ok(model_.set_metalayer(*writer, "units", pattern(20, 4)));
  expect_ok(model_.write(*writer, 240, pattern(40, 4)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  EXPECT_EQ(files_.status_at(dir_.handle(), name_)->st_ino, inode)
      << "a header of the same length is switched in place";
}

TEST_F(FrameWriterTest, MetalayersOfAFrameWithoutChunks) {
  make_empty();
  const auto writer = open();
  expect_ok(model_.set_vlmetalayer(*writer, "notes", pattern(90, 2)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  expect_ok(model_.set_metalayer(*writer, "units", pattern(900, 2)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  expect_ok(model_.set_metalayer(*writer, "units", pattern(900, 3)));
  expect_ok(model_.write(*writer, 0, pattern(250, 4)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

// semantics: Z1
TEST_F(FrameWriterTest, RefusesChangesThatNoFrameCanHold) {
  make_filled(250);
  const auto writer = open();
  for (int i = 0; i < 16; ++i)
    expect_ok(model_.set_vlmetalayer(*writer, "layer" + std::to_string(i), pattern(9, 3)));
  EXPECT_EQ(frame::FrameMetalayers(*writer).set_variable("one too many", {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(frame::FrameMetalayers(*writer).set_variable("", {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(frame::FrameMetalayers(*writer).set_variable(std::string(32, 'n'), {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(frame::FrameMetalayers(*writer).remove_variable("not there").error().kind, ErrorKind::invalid);
  EXPECT_EQ(writer->store(ChunkNumber{4}, test::encoded(pattern(kWrittenChunk, 1))).error().kind, ErrorKind::invalid);
  EXPECT_EQ(writer->store(ChunkNumber{1}, test::encoded(pattern(kWrittenChunk - 1, 1))).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(writer->store(ChunkNumber{2}, test::encoded(pattern(kWrittenChunk + 1, 1))).error().kind,
            ErrorKind::invalid);
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, AFormerLastChunkThatIsShortMustBeStoredAgain) {
  make_filled(250);
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{3}, test::encoded(pattern(kWrittenChunk, 1))));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::invalid);
  writer->abandon();
  expect_ok(writer->resize(220));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::invalid);
  writer->abandon();
  EXPECT_FALSE(writer->has_changes());
  check(writer.get());
}

TEST_F(FrameWriterTest, TheFileStaysBoundedIfTheLastChunkIsCommittedOften) {
  constexpr std::int32_t kLarge = 60'000;
  frame::NewFrame made;
  made.chunksize = kLarge;
  make(frame::empty_frame(made));
  model_.chunksize = kLarge;
  const auto writer = open({.fresh = true});
  for (unsigned i = 0; i < 1000; ++i) {
    expect_ok(model_.write(*writer, model_.plain.size(), pattern(100, i)));
    expect_ok(writer->commit(Durability::ordered));
    // At most as many dead bytes as live ones, plus kFewDeadBytes, plus those of one commit.
    const std::uint64_t size = std::filesystem::file_size(path());
    ASSERT_LE(size, 3 * model_.plain.size() + 50'000) << i;
  }
  check(writer.get());
}

/// Opens and writes files, but fails to create them.
class MakesNoFiles : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile, const std::string&, int, mode_t) override {
    return codec::io_error(EACCES, "create");
  }
};

TEST_F(FrameWriterTest, CommitsSucceedWithoutNewFiles) {
  make_filled(550);
  MakesNoFiles files;
  const auto writer = FrameWriter::open(files, dir_.handle(), name_, nullptr, {.fresh = true});
  ASSERT_TRUE(writer);
  for (unsigned i = 0; i < 200; ++i) {
    expect_ok(model_.write(**writer, 0, pattern(550, i)));
    expect_ok((*writer)->commit(Durability::ordered));
  }
  EXPECT_GT(test::file_bytes(path()).size(), 100'000U);
  check(writer->get());
}

TEST_F(FrameWriterTest, CompactingKeepsContentAndAttributes) {
  make_filled(550);
  ASSERT_EQ(::chmod(path().c_str(), 0640), 0);
  const bool attributes = ::setxattr(path().c_str(), "user.colour", "blue", 4, 0) == 0;
  const auto writer = open();
  expect_ok(model_.set_vlmetalayer(*writer, "notes", pattern(90, 2)));
  for (unsigned i = 0; i < 20; ++i) {
    expect_ok(model_.write(*writer, i * 20, pattern(100, i)));
    expect_ok(writer->commit(Durability::durable));
  }
  const auto before = *files_.status_at(dir_.handle(), name_);
  expect_ok(frame::FrameSpace(*writer).compact());
  check(writer.get());
  EXPECT_EQ(frame::FrameSpace(*writer).dead_bytes(), 0U);
  const auto after = *files_.status_at(dir_.handle(), name_);
  EXPECT_LT(after.st_size, before.st_size / 3);
  EXPECT_EQ(after.st_mode, before.st_mode);
  EXPECT_EQ(after.st_mtim.tv_sec, before.st_mtim.tv_sec);
  EXPECT_EQ(after.st_mtim.tv_nsec, before.st_mtim.tv_nsec);
  if (attributes) {
    char value[8] = {};
    EXPECT_EQ(::getxattr(path().c_str(), "user.colour", value, sizeof value), 4);
  }
  expect_ok(model_.write(*writer, 500, pattern(300, 8)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
  for (const auto& entry : std::filesystem::directory_iterator(temp_.path()))
    EXPECT_EQ(entry.path().filename(), name_) << "a temporary file is left";
}

TEST_F(FrameWriterTest, FramesThatCannotBeWrittenAreRefused) {
  auto builder = test::plain_frame(pattern(250, 1), kWrittenChunk);
  builder.chunksize = 0;
  builder.general_flags = 0x53;
  temp_.write(name_, builder.build());
  auto writer = FrameWriter::open(files_, dir_.handle(), name_, nullptr);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::unsupported);
  builder = test::plain_frame(pattern(250, 1), kWrittenChunk);
  builder.general_flags = 0x93;
  temp_.write(name_, builder.build());
  writer = FrameWriter::open(files_, dir_.handle(), name_, nullptr);
  ASSERT_FALSE(writer);
  EXPECT_EQ(writer.error().kind, ErrorKind::unsupported);
}

TEST_F(FrameWriterTest, LossyFramesAreRefusedIfChunksAreStored) {
  Bytes bytes = frame::empty_frame(new_frame());
  bytes[frame::layout::kFiltersAt] = static_cast<std::uint8_t>(codec::FilterId::trunc_prec);
  bytes[frame::layout::kFiltersMetaAt] = 10;
  make(bytes);
  const auto refused = FrameWriter::open(files_, dir_.handle(), name_, nullptr);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, ErrorKind::unsupported);
  const auto writer = open({.fresh = false, .stores_chunks = false});
  expect_ok(model_.set_vlmetalayer(*writer, "notes", pattern(90, 2)));
  expect_ok(writer->commit(Durability::durable));
  check(writer.get());
}

TEST_F(FrameWriterTest, RandomChangesAreReadBack) {
  for (unsigned seed = 0; seed < 30; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    make_empty();
    auto writer = open();
    for (int step = 0; step < 60; ++step) {
      const std::size_t size = model_.plain.size();
      switch (below(9)) {
        case 7: {
          const std::size_t first = below(size / 100 + 2);
          model_.zero(*writer, first, first + below(6));
          break;
        }
        case 0:
          expect_ok(model_.write(*writer, size, pattern(1 + below(400), random())));
          break;
        case 1:
          expect_ok(model_.write(*writer, below(size + 1), pattern(1 + below(300), random())));
          break;
        case 2:
          expect_ok(model_.write(*writer, below(size + 1), Bytes(1 + below(300), 0)));
          break;
        case 3:
          expect_ok(model_.resize(*writer, below(size + 1)));
          break;
        case 4:
          expect_ok(model_.resize(*writer, size + below(1000)));
          break;
        case 5:
          expect_ok(model_.set_vlmetalayer(*writer, "v" + std::to_string(below(3)), pattern(below(90), random())));
          break;
        case 6:
          expect_ok(model_.set_metalayer(*writer, "m" + std::to_string(below(2)), pattern(8, random())));
          break;
        default:
          if (below(3) == 0) {
            expect_ok(frame::FrameSpace(*writer).compact());
          } else {
            expect_ok(writer->commit(below(2) == 0 ? Durability::durable : Durability::ordered));
          }
          check(writer.get());
          if (below(4) == 0) writer = open();
          break;
      }
    }
    expect_ok(writer->commit(Durability::durable));
    check(writer.get());
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace cframefs
