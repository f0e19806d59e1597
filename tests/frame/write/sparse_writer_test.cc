// Changes of sparse frames: new chunks become new files, a rename replaces the index, and files without a reference are
// removed.
#include <cerrno>
#include <filesystem>
#include <random>

#include <gtest/gtest.h>

#include "frame/container/chunk_reader.h"
#include "frame/write/frame_space.h"
#include "tests/frame/write/written_sparse_frame.h"
#include "tests/support/forwarding_files.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using frame::ChunkNumber;
using frame::Durability;
using test::Bytes;
using test::FrameModel;
using test::pattern;

constexpr std::int32_t kChunk = test::kSparseChunk;

using SparseWriterTest = test::WrittenSparseFrame;

TEST_F(SparseWriterTest, ChunksAreReplacedAppendedAndDropped) {
  {
    const auto writer = open();
    expect_ok(model_.write(*writer, 120, pattern(200, 3)));
    expect_ok(writer->commit(Durability::durable));
    check();
    expect_ok(model_.write(*writer, 550, pattern(300, 4)));
    expect_ok(writer->commit(Durability::ordered));
    check();
    expect_ok(model_.resize(*writer, 230));
    expect_ok(writer->commit(Durability::durable));
    check();
  }
  EXPECT_EQ(file_count(), 1 + 3U) << "unreferenced files are left";
  check();
}

TEST_F(SparseWriterTest, TheLastChunkIsRemovedAndAddedAgain) {
  const auto writer = open();
  expect_ok(model_.resize(*writer, 0));
  expect_ok(writer->commit(Durability::durable));
  check();
  expect_ok(model_.write(*writer, 0, pattern(130, 4)));
  expect_ok(writer->commit(Durability::durable));
  check();
}

TEST_F(SparseWriterTest, ASealIsAddedKeptAndVerified) {
  const auto writer = open();
  expect_ok(writer->seal([](std::uint64_t) { return true; }));
  expect_ok(writer->commit(Durability::durable));
  const auto expect_sealed = [&] {
    const auto opened = test::open_frame(directory().string());
    ASSERT_TRUE(opened);
    const auto seal = (*opened)->as_frame()->seal();
    ASSERT_TRUE(seal && seal->holds().value_or(false));
    for (std::int64_t chunk = 0; chunk < (*opened)->chunk_count(); ++chunk) {
      const auto digests = (*opened)->digests(frame::ChunkNumber{chunk});
      const auto location = (*opened)->locate_chunk(frame::ChunkNumber{chunk});
      ASSERT_TRUE(digests && location);
      EXPECT_EQ(digests->any(), location->special == codec::SpecialValue::none) << chunk;
    }
  };
  expect_sealed();
  for (unsigned i = 0; i < 20; ++i) {
    expect_ok(model_.write(*writer, i * 37, pattern(120, i)));
    expect_ok(writer->commit(Durability::durable));
    check();
    expect_sealed();
  }
  const auto opened = test::open_frame(directory().string());
  ASSERT_TRUE(opened);
  const auto location = (*opened)->locate_chunk(frame::ChunkNumber{2});
  ASSERT_TRUE(location);
  const std::string file = "x.b2frame/" + location->source->label();
  Bytes bytes = test::file_bytes(temp_.path() / file);
  bytes.back() ^= 1;
  temp_.write(file, bytes);
  const auto read = test::read_chunk(**test::open_frame(directory().string()), 2);
  ASSERT_FALSE(read);
  EXPECT_EQ(read.error().kind, codec::ErrorKind::corruption);
}

TEST_F(SparseWriterTest, CompactionSealsUnlessItIsToldNotTo) {
  using frame::Checksums;
  const auto is_sealed = [&] {
    const auto opened = test::open_frame(directory().string());
    const auto seal = opened ? (*opened)->as_frame()->seal() : nullptr;
    return seal && seal->holds().value_or(false);
  };
  {
    // A commit would have to read all chunks.
    const auto writer = open();
    expect_ok(model_.write(*writer, 120, pattern(200, 3)));
    expect_ok(writer->commit(Durability::durable));
    EXPECT_FALSE(is_sealed());
  }
  for (const auto& [checksums, sealed] : {std::pair(Checksums::keep, false),
                                          {Checksums::off, false},
                                          {Checksums::on, true},
                                          {Checksums::keep, true},
                                          {Checksums::off, false}}) {
    expect_ok(frame::FrameSpace(*open(frame::system_files(), {.checksums = checksums})).compact());
    EXPECT_EQ(is_sealed(), sealed) << static_cast<int>(checksums);
    check();
  }
}

TEST_F(SparseWriterTest, TheIndexChangesItsLengthWithEveryCommit) {
  const auto writer = open();
  for (unsigned i = 0; i < 5; ++i) {
    const auto before = std::filesystem::file_size(directory() / "chunks.b2frame");
    expect_ok(model_.write(*writer, 0, pattern(kChunk, i)));
    expect_ok(writer->commit(Durability::durable));
    EXPECT_NE(std::filesystem::file_size(directory() / "chunks.b2frame"), before);
    check();
  }
}

TEST_F(SparseWriterTest, AReaderKeepsReadingItsState) {
  const auto writer = open();
  const auto old_state = writer->container();
  const FrameModel old_model = model_;
  expect_ok(model_.write(*writer, 0, pattern(500, 9)));
  expect_ok(writer->commit(Durability::durable));
  EXPECT_TRUE(test::read_model(*old_state)->plain == old_model.plain);
}

// semantics: C7
TEST_F(SparseWriterTest, FilesOfACrashAreNotOverwrittenAndCompactRemovesThem) {
  temp_.write("x.b2frame/00000006.chunk", Bytes(10, 1));
  temp_.write("x.b2frame/000000FF.chunk", {});
  temp_.write("x.b2frame/notes.txt", Bytes(10, 2));
  const auto writer = open();
  expect_ok(model_.write(*writer, 550, pattern(200, 3)));
  expect_ok(writer->commit(Durability::durable));
  check();
  EXPECT_EQ(test::file_bytes(directory() / "00000006.chunk"), Bytes(10, 1));
  expect_ok(frame::FrameSpace(*writer).compact());
  check();
  EXPECT_FALSE(std::filesystem::exists(directory() / "00000006.chunk"));
  EXPECT_FALSE(std::filesystem::exists(directory() / "000000FF.chunk"));
  EXPECT_TRUE(std::filesystem::exists(directory() / "notes.txt"));
}

TEST_F(SparseWriterTest, ChunksThatShareAFileAreRefused) {
  make({0, 1, 2}, 300);
  test::FrameBuilder builder;
  builder.frame_type = 1;
  builder.chunksize = kChunk;
  builder.nbytes = 300;
  builder.index = test::plain_index({0, 1, 1});
  builder.cbytes = 3 * 132;
  temp_.write("x.b2frame/chunks.b2frame", builder.build());
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{1}, test::encoded(pattern(kChunk, 1))));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::unsupported);
}

TEST_F(SparseWriterTest, AForeignChangeIsNotOverwritten) {
  const auto writer = open();
  const auto other = open();
  expect_ok(model_.write(*other, 10, pattern(50, 3)));
  expect_ok(other->commit(Durability::durable));
  expect_ok(writer->store(ChunkNumber{0}, test::encoded(pattern(kChunk, 1))));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, ErrorKind::stale);
  check();
}

/// Fails changing call number `fail_at`.
class FailsOnce : public test::ForwardingFiles {
 public:
  explicit FailsOnce(int fail_at) : left_(fail_at) {}
  bool failed() const { return failed_; }
  bool failed_sync() const { return failed_sync_; }

  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    if (due()) return codec::io_error(ENOSPC, "create");
    return ForwardingFiles::create_at(dir, path, flags, mode);
  }
  codec::Result<void> pwrite(frame::OpenFile file, codec::ByteView from, frame::FileOffset at) override {
    if (due()) return codec::io_error(ENOSPC, "pwrite");
    return ForwardingFiles::pwrite(file, from, at);
  }
  codec::Result<void> rename_at(frame::OpenFile from_dir, const std::string& from, frame::OpenFile to_dir,
                                const std::string& to, unsigned flags) override {
    if (due()) return codec::io_error(ENOSPC, "rename");
    return ForwardingFiles::rename_at(from_dir, from, to_dir, to, flags);
  }
  codec::Result<void> sync(frame::OpenFile file, bool data_only) override {
    if (due()) {
      failed_sync_ = true;
      return codec::io_error(ENOSPC, "sync");
    }
    return ForwardingFiles::sync(file, data_only);
  }

 private:
  bool due() {
    if (failed_ || --left_ > 0) return false;
    failed_ = true;
    return true;
  }
  int left_;
  bool failed_ = false;
  bool failed_sync_ = false;
};

TEST_F(SparseWriterTest, ACommitThatFailedCanBeTriedAgain) {
  for (int call = 1;; ++call) {
    make({0, 1, 2, 3, 4, 5}, 550);
    const FrameModel before = model_;
    FailsOnce failing(call);
    auto writer = open(failing);
    expect_ok(model_.write(*writer, 120, pattern(700, 3)));
    const auto done = writer->commit(Durability::durable);
    if (!failing.failed()) {
      EXPECT_GT(call, 10);
      break;
    }
    ASSERT_FALSE(done) << call;
    EXPECT_EQ(done.error().sys, ENOSPC);
    if (failing.failed_sync()) {
      EXPECT_EQ(writer->commit(Durability::durable).error().sys, EIO) << call;
      writer.reset();
      const auto read = test::read_model(**test::open_frame(directory().string()));
      ASSERT_TRUE(read) << call;
      EXPECT_TRUE(read->plain == before.plain || read->plain == model_.plain) << call;
      continue;
    }
    EXPECT_TRUE(test::read_model(**test::open_frame(directory().string()))->plain == before.plain) << call;
    expect_ok(writer->commit(Durability::durable));
    check();
  }
}

TEST_F(SparseWriterTest, RandomChangesAreReadBack) {
  for (unsigned seed = 0; seed < 15; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&random](std::size_t bound) { return static_cast<std::size_t>(random() % bound); };
    make({3, 0, 2, 1, 9, 4}, 550);
    auto writer = open();
    for (int step = 0; step < 40; ++step) {
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
          expect_ok(model_.set_vlmetalayer(*writer, "v", pattern(below(90), random())));
          break;
        case 6:
          expect_ok(model_.set_metalayer(*writer, "m", pattern(8, random())));
          break;
        default:
          if (below(4) == 0) {
            expect_ok(frame::FrameSpace(*writer).compact());
          } else {
            expect_ok(writer->commit(Durability::durable));
          }
          check();
          if (below(4) == 0) writer = open();
          break;
      }
    }
    expect_ok(writer->commit(Durability::durable));
    check();
    if (HasFailure()) FAIL() << "seed " << seed;
  }
}

}  // namespace
}  // namespace cframefs
