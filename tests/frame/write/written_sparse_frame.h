// A sparse frame in a temporary directory, for tests that change it, with a model of its expected content.
//
// Thread safety: one thread. Errors: GoogleTest's.
#pragma once

#include <algorithm>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "frame/cframe/sparse_frame.h"
#include "frame/write/frame_writer.h"
#include "tests/support/frame_builder.h"
#include "tests/support/frame_model.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs::test {

inline constexpr std::int32_t kSparseChunk = 100;

class WrittenSparseFrame : public ::testing::Test {
 protected:
  WrittenSparseFrame() {
    const auto fd = files().open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(files(), fd.value_or(frame::OpenFile{}));
    make({0, 1, 2, 3, 4, 5}, 550);
  }

  static frame::FileOps& files() { return frame::system_files(); }
  std::filesystem::path directory() const { return temp_.path() / "x.b2frame"; }

  /// Makes a frame of `size` bytes. Chunk i is in file number entries[i].
  void make(const std::vector<std::int64_t>& entries, std::size_t size) {
    std::filesystem::remove_all(directory());
    std::filesystem::create_directory(directory());
    model_ = FrameModel{};
    model_.chunksize = kSparseChunk;
    model_.plain = pattern(size, 1);
    FrameBuilder builder;
    builder.frame_type = 1;
    builder.chunksize = kSparseChunk;
    builder.nbytes = static_cast<std::int64_t>(size);
    if (!entries.empty()) builder.index = plain_index(entries);
    builder.cbytes = 0;
    for (std::size_t i = 0; i < entries.size(); ++i) {
      const std::size_t begin = i * kSparseChunk;
      const auto chunk =
          plain_chunk(codec::ByteView(model_.plain).subspan(begin, std::min<std::size_t>(kSparseChunk, size - begin)));
      temp_.write("x.b2frame/" + *frame::chunk_file_name(entries[i]), chunk);
      builder.cbytes += static_cast<std::int64_t>(chunk.size());
    }
    temp_.write("x.b2frame/chunks.b2frame", builder.build());
  }

  std::unique_ptr<frame::FrameWriter> open(frame::FileOps& files = frame::system_files(),
                                           const frame::WriterOptions& options = {}) {
    auto writer = frame::FrameWriter::open(files, dir_.handle(), "x.b2frame", nullptr, options);
    EXPECT_TRUE(writer) << (writer ? "" : codec::describe(writer.error()));
    return writer ? std::move(*writer) : nullptr;
  }

  static void expect_ok(const codec::Result<void>& result) { EXPECT_TRUE(result) << codec::describe(result.error()); }

  void check() {
    const auto opened = open_frame(directory().string());
    ASSERT_TRUE(opened) << codec::describe(opened.error());
    const auto read = read_model(**opened);
    ASSERT_TRUE(read) << codec::describe(read.error());
    EXPECT_TRUE(read->plain == model_.plain) << read->plain.size() << " bytes, " << model_.plain.size() << " expected";
    EXPECT_EQ(read->vlmetalayers, model_.vlmetalayers);
    EXPECT_EQ(read->metalayers, model_.metalayers);
    // C-Blosc2 requires that cbytes is at least the sum of the files and at least each number + 32.
    std::uint64_t sum = 0;
    std::uint64_t room = 0;
    const auto frame = frame::as_shared_frame(*opened);
    for (std::int64_t chunk = 0; chunk < frame->chunk_count(); ++chunk) {
      const std::int64_t entry = *frame->index_entry(frame::ChunkNumber{chunk});
      if (entry < 0) continue;
      sum += std::filesystem::file_size(directory() / *frame::chunk_file_name(entry));
      room = std::max(room, static_cast<std::uint64_t>(entry) + 32);
    }
    EXPECT_GE(frame->parameters().cbytes, std::max(sum, room));
    EXPECT_LE(frame->parameters().cbytes, sum + 200);
  }

  std::size_t file_count() const {
    return static_cast<std::size_t>(std::distance(std::filesystem::directory_iterator(directory()), {}));
  }

  TempDir temp_;
  frame::Descriptor dir_;
  FrameModel model_;
};

}  // namespace cframefs::test
