// A file of 0 bytes that is named like a frame is an empty frame: a power cut leaves such a file of a new frame that
// was never synced.
#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/open/open.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_space.h"
#include "frame/write/frame_writer.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using frame::Durability;
using test::Bytes;
using test::FrameModel;
using test::pattern;

class BlankFrameTest : public ::testing::Test {
 protected:
  BlankFrameTest() {
    temp_.write("x.b2frame", {});
    const auto fd = frame::system_files().open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(frame::system_files(), fd.value_or(frame::OpenFile{}));
    model_.chunksize = 100;
  }
  std::string path() const { return (temp_.path() / "x.b2frame").string(); }
  std::unique_ptr<frame::FrameWriter> open() const {
    auto writer = frame::FrameWriter::open(frame::system_files(), dir_.handle(), "x.b2frame", nullptr);
    EXPECT_TRUE(writer) << codec::describe(writer.error());
    return writer ? std::move(*writer) : nullptr;
  }
  static void expect_ok(const codec::Result<void>& result) { EXPECT_TRUE(result) << codec::describe(result.error()); }

  test::TempDir temp_;
  frame::Descriptor dir_;
  FrameModel model_;
};

TEST_F(BlankFrameTest, ReadsAsAnEmptyFrame) {
  const auto opened = frame::open_path(frame::system_files(), path(), nullptr);
  ASSERT_TRUE(opened) << codec::describe(opened.error());
  EXPECT_EQ((*opened)->parameters().nbytes, 0U);
  EXPECT_EQ((*opened)->chunk_count(), 0);
  EXPECT_TRUE((*opened)->vlmetalayer_names().empty());
}

TEST_F(BlankFrameTest, AFileWithAnotherNameIsNotAFrame) {
  for (const char* name : {"plain.txt", "plain", "array.b2nd", "pack.blp"}) {
    temp_.write(name, {});
    const auto opened = frame::open_path(frame::system_files(), (temp_.path() / name).string(), nullptr);
    ASSERT_FALSE(opened) << name;
    EXPECT_EQ(opened.error().kind, codec::ErrorKind::corruption) << name;
  }
}

TEST_F(BlankFrameTest, BecomesAFrameWithItsFirstCommit) {
  for (const Durability durability : {Durability::ordered, Durability::durable}) {
    temp_.write("x.b2frame", {});
    model_.plain.clear();
    const auto writer = open();
    EXPECT_TRUE(test::file_bytes(path()).empty()) << "opening writes nothing";
    for (unsigned seed = 0; seed < 3; ++seed) {
      if (seed == 0) {
        expect_ok(writer->store(frame::ChunkNumber{0}, test::encoded(pattern(100, 9))));
        model_.plain = pattern(100, 9);
      } else {
        expect_ok(model_.write(*writer, model_.plain.size(), pattern(130, seed)));
      }
      expect_ok(writer->commit(durability));
      const auto opened = test::open_frame(path());
      ASSERT_TRUE(opened);
      EXPECT_TRUE(test::read_model(**opened)->plain == model_.plain);
    }
  }
}

TEST_F(BlankFrameTest, AcceptsMetalayersAndAnEmptyCommit) {
  const auto writer = open();
  expect_ok(writer->commit(Durability::durable));
  expect_ok(frame::FrameMetalayers(*writer).set_variable("notes", Bytes(10, 1)));
  expect_ok(writer->commit(Durability::durable));
  const auto opened = test::open_frame(path());
  ASSERT_TRUE(opened);
  EXPECT_EQ(*(*opened)->vlmetalayer("notes"), Bytes(10, 1));
}

TEST_F(BlankFrameTest, IsCompactedToAFrame) {
  expect_ok(frame::FrameSpace(*open()).compact());
  EXPECT_EQ(test::file_bytes(path()).size(), 132U);
  EXPECT_TRUE(test::open_frame(path()));
}

TEST_F(BlankFrameTest, IsStaleAfterAnotherProgramWroteIt) {
  const auto writer = open();
  const auto other = open();
  expect_ok(other->store(frame::ChunkNumber{0}, test::encoded(pattern(100, 1))));
  expect_ok(writer->store(frame::ChunkNumber{0}, test::encoded(pattern(100, 2))));
  const std::vector<std::uint8_t> byte(1);
  temp_.write("x.b2frame", byte);
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, codec::ErrorKind::stale);
  temp_.write("x.b2frame", {});
  expect_ok(other->commit(Durability::durable));
  EXPECT_EQ(writer->commit(Durability::durable).error().kind, codec::ErrorKind::stale);
}

}  // namespace
}  // namespace cframefs
