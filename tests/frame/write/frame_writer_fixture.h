// A frame that tests write, with a model of its expected content.
//
// Thread safety: one thread. Ownership: the fixture removes its directory.
#pragma once

#include <memory>
#include <string>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/write/frame_writer.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {

using codec::ErrorKind;
using frame::ChunkNumber;
using frame::Durability;
using frame::FrameWriter;
using test::Bytes;
using test::FrameModel;
using test::pattern;

constexpr std::int32_t kWrittenChunk = 100;

class FrameWriterTest : public ::testing::Test {
 protected:
  FrameWriterTest() : files_(frame::system_files()) {
    const auto fd = files_.open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(files_, fd.value_or(frame::OpenFile{}));
  }

  static frame::NewFrame new_frame() {
    frame::NewFrame made;
    made.chunksize = kWrittenChunk;
    return made;
  }

  std::string path() const { return (temp_.path() / name_).string(); }

  /// Writes the file `name_` with these bytes, and resets the model to an empty frame.
  void make(const Bytes& bytes) {
    temp_.write(name_, bytes);
    model_ = FrameModel{};
    model_.chunksize = kWrittenChunk;
  }
  void make_empty() { make(frame::empty_frame(new_frame())); }
  /// Makes a frame of `size` bytes.
  void make_filled(std::size_t size) {
    make(test::plain_frame(pattern(size, 1), kWrittenChunk).build());
    model_.plain = pattern(size, 1);
  }

  std::unique_ptr<FrameWriter> open(const frame::WriterOptions& options = {}) {
    auto writer = FrameWriter::open(files_, dir_.handle(), name_, nullptr, options);
    EXPECT_TRUE(writer) << (writer ? "" : codec::describe(writer.error()));
    return writer ? std::move(*writer) : nullptr;
  }

  /// Expects the content of the model in the file, and in the writer's container.
  void check(const FrameWriter* writer = nullptr) {
    const auto opened = test::open_frame(path());
    ASSERT_TRUE(opened) << codec::describe(opened.error());
    const auto read = test::read_model(**opened);
    ASSERT_TRUE(read) << codec::describe(read.error());
    EXPECT_TRUE(read->plain == model_.plain) << read->plain.size() << " bytes, " << model_.plain.size() << " expected";
    EXPECT_EQ(read->vlmetalayers, model_.vlmetalayers);
    EXPECT_EQ(read->metalayers, model_.metalayers);
    if (writer == nullptr) return;
    const auto own = test::read_model(*writer->container());
    ASSERT_TRUE(own) << codec::describe(own.error());
    EXPECT_TRUE(own->plain == model_.plain);
    EXPECT_EQ(writer->pending().nbytes(), model_.plain.size());
  }

  static void expect_ok(const codec::Result<void>& result) { EXPECT_TRUE(result) << codec::describe(result.error()); }

  test::TempDir temp_;
  const std::string name_ = "frame.b2frame";
  frame::FileOps& files_;
  frame::Descriptor dir_;
  FrameModel model_;
};

}  // namespace cframefs
