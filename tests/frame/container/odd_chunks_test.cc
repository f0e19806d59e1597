// Frames whose chunks are not whole items: chunks of zeros are stored in them, because the reference library reads only
// special chunks of whole items.
#include <random>

#include <gtest/gtest.h>

#include "frame/write/frame_space.h"
#include "tests/frame/write/written_sparse_frame.h"

namespace cframefs {
namespace {

using codec::SpecialValue;
using frame::ChunkNumber;
using frame::Durability;
using test::Bytes;
using test::FrameModel;
using test::pattern;

constexpr std::int32_t kTypesize = 4;

/// Parameters: chunk size, and whether the frame is sparse.
class OddChunksTest : public ::testing::TestWithParam<std::tuple<std::int32_t, bool>> {
 protected:
  OddChunksTest() : chunksize_(std::get<0>(GetParam())), sparse_(std::get<1>(GetParam())) {
    const auto fd = frame::system_files().open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(frame::system_files(), fd.value_or(frame::OpenFile{}));
    model_.chunksize = chunksize_;
    model_.plain = pattern(25, 1);
    test::FrameBuilder builder = test::plain_frame(model_.plain, chunksize_);
    builder.typesize = kTypesize;
    if (sparse_) make_sparse(builder);
    temp_.write(sparse_ ? "x.b2frame/chunks.b2frame" : "x.b2frame", builder.build());
  }

  void make_sparse(test::FrameBuilder& builder) const {
    std::filesystem::create_directory(path());
    builder.frame_type = 1;
    builder.cbytes = static_cast<std::int64_t>(builder.chunk_section.size());
    builder.chunk_section.clear();
    std::vector<std::int64_t> entries;
    const auto size = static_cast<std::size_t>(chunksize_);
    for (std::size_t begin = 0; begin < model_.plain.size(); begin += size) {
      const auto piece = codec::ByteView(model_.plain).subspan(begin, std::min(size, model_.plain.size() - begin));
      temp_.write("x.b2frame/" + *frame::chunk_file_name(static_cast<std::int64_t>(entries.size())),
                  test::plain_chunk(piece));
      entries.push_back(static_cast<std::int64_t>(entries.size()));
    }
    builder.index = test::plain_index(entries);
  }

  std::filesystem::path path() const { return temp_.path() / "x.b2frame"; }

  static void expect_ok(const codec::Result<void>& result) { EXPECT_TRUE(result) << codec::describe(result.error()); }

  void check() const {
    const auto opened = test::open_frame(path().string());
    ASSERT_TRUE(opened) << codec::describe(opened.error());
    const auto read = test::read_model(**opened);
    ASSERT_TRUE(read) << codec::describe(read.error());
    EXPECT_TRUE(read->plain == model_.plain);
    for (std::int64_t chunk = 0; chunk < (*opened)->chunk_count(); ++chunk) {
      const auto location = (*opened)->locate_chunk(ChunkNumber{chunk});
      ASSERT_TRUE(location);
      const std::size_t begin = static_cast<std::size_t>(chunk) * static_cast<std::size_t>(chunksize_);
      const std::size_t length =
          std::min<std::size_t>(static_cast<std::size_t>(chunksize_), model_.plain.size() - begin);
      if (location->special != SpecialValue::none) {
        EXPECT_EQ(length % kTypesize, 0U) << "chunk " << chunk << " is special but not whole items";
      }
    }
  }

  const std::int32_t chunksize_;
  const bool sparse_;
  test::TempDir temp_;
  frame::Descriptor dir_;
  FrameModel model_;
};

TEST_P(OddChunksTest, ZerosAfterTheEndAreReadableByTheReferenceLibrary) {
  const auto writer = *frame::FrameWriter::open(frame::system_files(), dir_.handle(), "x.b2frame", nullptr);
  for (const std::size_t size : {100U, 103U, 61U, 300U, 0U, 90U}) {
    expect_ok(model_.resize(*writer, size));
    expect_ok(writer->commit(Durability::durable));
    check();
  }
  expect_ok(frame::FrameSpace(*writer).compact());
  check();
}

TEST_P(OddChunksTest, RepeatedResizesLeaveNoSpecialChunkOfAnotherLength) {
  const auto writer = *frame::FrameWriter::open(frame::system_files(), dir_.handle(), "x.b2frame", nullptr);
  std::mt19937 random(3);
  for (unsigned step = 0; step < 200; ++step) {
    const std::size_t size = model_.plain.size();
    if (random() % 3 == 0) {
      expect_ok(model_.write(*writer, random() % (size + 1), pattern(1 + random() % 30, step)));
    } else {
      expect_ok(model_.resize(*writer, random() % 200));
    }
    if (random() % 3 != 0) continue;
    expect_ok(writer->commit(Durability::ordered));
    check();
    if (HasFailure()) FAIL() << "step " << step;
  }
}

INSTANTIATE_TEST_SUITE_P(Frames, OddChunksTest, ::testing::Combine(::testing::Values(10, 9, 12), ::testing::Bool()));

}  // namespace
}  // namespace cframefs
