// Sparse frames: only the index tells which chunk files exist, reads open them, and nothing outside the directory is
// opened.
#include "frame/cframe/sparse_frame.h"

#include <filesystem>

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_reader.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using test::Bytes;
using test::FrameBuilder;
using test::TempDir;

std::size_t open_descriptors() {
  std::size_t count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

/// Writes a frame of chunks of 100 bytes. Chunk i is in file number entries[i] and consists of this number.
void write_frame(const TempDir& temp, const std::vector<std::int64_t>& entries) {
  FrameBuilder builder;
  builder.frame_type = 1;
  builder.chunksize = 100;
  builder.nbytes = static_cast<std::int64_t>(entries.size()) * 100;
  builder.index = test::plain_index(entries);
  builder.cbytes = 132 * static_cast<std::int64_t>(entries.size());
  temp.write("chunks.b2frame", builder.build());
  for (const std::int64_t entry : entries) {
    const auto name = frame::chunk_file_name(entry);
    if (name) temp.write(*name, test::plain_chunk(Bytes(100, static_cast<std::uint8_t>(entry))));
  }
}

codec::Result<std::shared_ptr<const frame::Container>> open(const TempDir& temp) {
  return test::open_frame(temp.path().string());
}

TEST(SparseFrame, FileNumbersAreIndependentOfChunkNumbers) {
  const TempDir temp;
  write_frame(temp, {7, 0, 0xffffffff, frame::layout::kZerosEntry, 7});
  const auto opened = open(temp);
  ASSERT_TRUE(opened) << describe(opened.error());
  const std::uint8_t expected[] = {7, 0, 0xff, 0, 7};
  for (std::int64_t chunk = 0; chunk < 5; ++chunk) {
    const auto content = test::read_chunk(**opened, chunk);
    ASSERT_TRUE(content) << describe(content.error());
    EXPECT_EQ(*content, Bytes(100, expected[chunk]));
  }
}

TEST(SparseFrame, NamesHaveEightUpperCaseDigits) {
  EXPECT_EQ(frame::chunk_file_name(0), "00000000.chunk");
  EXPECT_EQ(frame::chunk_file_name(0xabcdef), "00ABCDEF.chunk");
  EXPECT_EQ(frame::chunk_file_name(0xffffffff), "FFFFFFFF.chunk");
  EXPECT_FALSE(frame::chunk_file_name(std::int64_t{1} << 32));
  EXPECT_FALSE(frame::chunk_file_name(-1));
}

TEST(SparseFrame, ReadersKeepNoDescriptorOpen) {
  const TempDir temp;
  write_frame(temp, {0, 1, 2, 3, 4, 5, 6, 7});
  const auto opened = open(temp);
  ASSERT_TRUE(opened);
  const std::size_t before = open_descriptors();
  std::vector<std::shared_ptr<const frame::ChunkReader>> readers;
  for (std::int64_t chunk = 0; chunk < 8; ++chunk) {
    readers.push_back(*frame::ChunkReader::open(**opened, frame::ChunkNumber{chunk}));
  }
  EXPECT_EQ(open_descriptors(), before);
}

TEST(SparseFrame, LinksOutOfTheDirectoryAreNotFollowed) {
  const TempDir temp;
  const TempDir other;
  write_frame(temp, {0, 1});
  const auto chunk = temp.path() / "00000001.chunk";
  std::filesystem::rename(chunk, other.path() / "outside");
  std::filesystem::create_symlink(other.path() / "outside", chunk);
  const auto opened = open(temp);
  ASSERT_TRUE(opened);
  EXPECT_TRUE(test::read_chunk(**opened, 0));
  const auto content = test::read_chunk(**opened, 1);
  ASSERT_FALSE(content);
  EXPECT_EQ(content.error().kind, codec::ErrorKind::corruption);
  EXPECT_EQ(content.error().chunk, 1);
  EXPECT_NE(content.error().reason.find("00000001.chunk"), std::string::npos);

  std::filesystem::rename(temp.path() / "chunks.b2frame", other.path() / "index");
  std::filesystem::create_symlink(other.path() / "index", temp.path() / "chunks.b2frame");
  EXPECT_FALSE(open(temp));
}

TEST(SparseFrame, APipeInPlaceOfAChunkDoesNotHang) {
  const TempDir temp;
  write_frame(temp, {0});
  std::filesystem::remove(temp.path() / "00000000.chunk");
  ASSERT_EQ(::mkfifo((temp.path() / "00000000.chunk").c_str(), 0600), 0);
  const auto opened = open(temp);
  ASSERT_TRUE(opened);
  EXPECT_FALSE(test::read_chunk(**opened, 0));
}

TEST(SparseFrame, AChunkReplacedWhileItIsReadIsStaleAndNotMixed) {
  const TempDir temp;
  write_frame(temp, {0});
  const auto opened = open(temp);
  ASSERT_TRUE(opened);
  const auto reader = frame::ChunkReader::open(**opened, frame::ChunkNumber{0});
  ASSERT_TRUE(reader);
  Bytes plain(100);
  codec::DecodeContext context;
  ASSERT_TRUE(frame::decode_whole(context, **reader, plain));
  temp.write("new", test::plain_chunk(Bytes(100, 9)));
  std::filesystem::rename(temp.path() / "new", temp.path() / "00000000.chunk");
  const auto done = frame::decode_whole(context, **reader, plain);
  ASSERT_FALSE(done);
  EXPECT_EQ(done.error().kind, codec::ErrorKind::stale);
  const auto again = test::read_chunk(**opened, 0);
  ASSERT_TRUE(again);
  EXPECT_EQ(*again, Bytes(100, 9));
}

TEST(SparseFrame, RefusesAnOffset) {
  const TempDir temp;
  write_frame(temp, {0});
  const auto opened = test::open_frame(temp.path().string(), 10);
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().kind, codec::ErrorKind::invalid);
}

}  // namespace
}  // namespace cframefs
