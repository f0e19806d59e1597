// Costs of writes: holes by their number, small writes to large chunks and small chunks by the bytes written.
#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/array_builder.h"
#include "tests/support/sanitizers.h"

namespace cframefs::fs {
namespace {

constexpr int kPunch = FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE;

class WriteCostsTest : public WrittenFilesystem {
 protected:
  /// Returns an empty frame of chunks of this size, open for writing.
  std::unique_ptr<FileHandle> frame_of(const std::string& name, std::int32_t chunksize) {
    frame::NewFrame made;
    made.chunksize = chunksize;
    directory_.write(name + ".b2frame", frame::empty_frame(made));
    return open(name);
  }
  /// Returns the memory of uncommitted data.
  static std::uint64_t dirty(const FileHandle& handle) { return handle.frame->write_back()->uncommitted().memory; }
};

// semantics: W5
TEST_F(WriteCostsTest, AHoleCostsAsMuchAsOneChunkHoweverLongItIs) {
  constexpr std::uint64_t kLong = std::uint64_t{64} << 40;
  auto handle = frame_of("x", 1 << 20);
  ASSERT_TRUE(write(*handle, 0, "begin"));
  ASSERT_TRUE(write(*handle, kLong - 3, "end"));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(filesystem_->files().allocate(*handle, kPunch, 100, kLong - 200));
    ASSERT_TRUE(write(*handle, kLong / 2, "middle"));
    EXPECT_LT(dirty(*handle), std::uint64_t{8} << 20);
    ASSERT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_ZERO_RANGE, 100, kLong - 200));
    EXPECT_EQ(read(*handle, kLong / 2, 6), std::string(6, '\0'));
    ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  }
  EXPECT_EQ(read(*handle, 0, 6), std::string("begin\0", 6));
  EXPECT_EQ(read(*handle, kLong - 4, 10), std::string("\0end", 4));
  EXPECT_TRUE(close(std::move(handle)));
  remount();
  handle = open("x");
  EXPECT_EQ(read(*handle, kLong - 4, 10), std::string("\0end", 4));
  const auto data = filesystem_->files().seek(*handle, 1 << 20, SEEK_DATA);
  ASSERT_TRUE(data);
  EXPECT_EQ(*data, kLong - (1 << 20));
  ASSERT_TRUE(resize(*handle, std::uint64_t{200} << 40));
  ASSERT_TRUE(resize(*handle, 3));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), "beg");
}

/// Zeroing zeros changes only the times.
TEST_F(WriteCostsTest, AHoleInAHoleIsNotWritten) {
  auto handle = frame_of("x", 1 << 20);
  ASSERT_TRUE(resize(*handle, std::uint64_t{64} << 40));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  const int syncs = disk_.syncs;
  ASSERT_TRUE(filesystem_->files().allocate(*handle, kPunch, 12'345, std::uint64_t{60} << 40));
  EXPECT_FALSE(handle->frame->write_back()->status().oldest_dirty);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(disk_.syncs, syncs);
}

// semantics: W12
TEST_F(WriteCostsTest, MoreChunksThanAnIndexHoldsAreRefusedAtOnce) {
  auto handle = frame_of("x", 1);
  constexpr std::uint64_t kMost = (0x7fffffff - 32) / 8;
  EXPECT_EQ(errno_of(write(*handle, kMost, "x")), EFBIG);
  EXPECT_EQ(errno_of(resize(*handle, kMost + 1)), EFBIG);
  EXPECT_EQ(errno_of(filesystem_->files().allocate(*handle, 0, 0, kMost + 1)), EFBIG);
  EXPECT_TRUE(resize(*handle, kMost));
  EXPECT_TRUE(filesystem_->files().allocate(*handle, kPunch, 0, kMost));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(size_of("x"), kMost);
}

/// A program that writes little holds little memory, however large the chunks are.
// semantics: Z1
TEST_F(WriteCostsTest, AChunkTakesNoMoreMemoryThanIsWrittenToIt) {
  constexpr std::int32_t kLargest = 0x7fffffff - 32;
  std::vector<std::unique_ptr<FileHandle>> handles;
  for (int i = 0; i < 300; ++i) {
    handles.push_back(frame_of("x" + std::to_string(i), i < 5 ? kLargest : 1 << 20));
    ASSERT_TRUE(write(*handles.back(), 0, std::string(100, 'x')));
  }
  const auto all_dirty = [&handles] {
    std::uint64_t bytes = 0;
    for (const auto& handle : handles)
      bytes += dirty(*handle);
    return bytes;
  };
  EXPECT_LT(all_dirty(), std::uint64_t{300} * 8192);
  for (int i = 0; i < 2; ++i) {
    // A stored chunk is changed in part, and then grows.
    ASSERT_TRUE(filesystem_->files().sync(*handles[0], false));
    ASSERT_TRUE(write(*handles[0], 50, "middle"));
    ASSERT_TRUE(write(*handles[0], 100 + 10 * static_cast<unsigned>(i), "0123456789"));
  }
  EXPECT_LT(all_dirty(), std::uint64_t{300} * 8192);
  for (auto& handle : handles)
    EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x0"), std::string(50, 'x') + "middle" + std::string(44, 'x') + "01234567890123456789");
  EXPECT_EQ(content("x299"), std::string(100, 'x'));
}

/// A commit would have to hold such a chunk whole.
// semantics: W13
TEST_F(WriteCostsTest, AChunkThatExceedsTheDirtyLimitIsNotWrittenInPart) {
  stop();
  options_.dirty_limit = std::uint64_t{64} << 20;
  start();
  auto handle = frame_of("x", 0x7fffffff - 32);
  ASSERT_TRUE(write(*handle, 0, "little"));
  EXPECT_EQ(errno_of(write(*handle, std::uint64_t{100} << 20, "x")), EFBIG);
  EXPECT_EQ(errno_of(resize(*handle, std::uint64_t{1} << 30)), EFBIG);
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(errno_of(resize(*handle, std::uint64_t{1} << 30)), EFBIG);
  EXPECT_EQ(read(*handle), "little");
  // Zeros take no memory.
  ASSERT_TRUE(resize(*handle, 0));
  EXPECT_TRUE(resize(*handle, std::uint64_t{1} << 30));
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(size_of("x"), std::uint64_t{1} << 30);
}

TEST_F(WriteCostsTest, ManySmallChunksStayWithinTheDirtyLimit) {
  stop();
  options_.dirty_limit = std::uint64_t{8} << 20;
  start();
  auto handle = frame_of("x", 1);
  std::string text(200'000, '\0');
  for (std::size_t i = 0; i < text.size(); ++i)
    text[i] = static_cast<char>('a' + i * i % 23);
  ASSERT_TRUE(write(*handle, 0, text.substr(0, 1000)));
  EXPECT_GT(dirty(*handle), 1000U * 256) << "the cost of each chunk is not counted";
  std::uint64_t most = 0;
  for (std::size_t at = 0; at < text.size(); at += 50'000) {
    ASSERT_TRUE(write(*handle, at, text.substr(at, 50'000)));
    most = std::max(most, dirty(*handle));
  }
  EXPECT_LE(most, *options_.dirty_limit / 2 + *options_.dirty_limit / 8);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), text);
  // 33 bytes for each chunk, the index, and as many dead bytes.
  EXPECT_LT(std::filesystem::file_size(directory_.path() / "x.b2frame"), 2 * text.size() * 36);
}

/// Zero chunks of an array are neither stored nor created one by one, either.
TEST_F(WriteCostsTest, AnArrayIsPunchedByRunsOfChunks) {
  stop();
  options_.b2nd = frame::ArrayForm::flat;
  const test::ArraySpec spec{{20'000, 6}, {3, 4}, {2, 3}, 4, "<i4"};
  const test::Bytes items = test::varied_items(spec.nbytes());
  directory_.write("x.b2nd", test::array_frame(spec, items).build());
  start();
  std::string model(items.begin(), items.end());
  std::mt19937 random(1);
  auto handle = open("x");
  for (int i = 0; i < test::steps(48); ++i) {  // the last change is synced
    const std::size_t at = random() % model.size();
    const std::size_t length = std::min<std::size_t>(1 + random() % (i % 3 == 0 ? 200'000 : 200), model.size() - at);
    ASSERT_TRUE(filesystem_->files().allocate(*handle, kPunch, at, length));
    std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(at), length, '\0');
    const std::string text(1 + random() % 50, 'x');
    const std::size_t place = random() % (model.size() - text.size());
    ASSERT_TRUE(write(*handle, place, text));
    model.replace(place, text.size(), text);
    ASSERT_EQ(read(*handle), model) << i;
    if (i % 4 == 3) {
      ASSERT_TRUE(filesystem_->files().sync(*handle, false));
    }
    ASSERT_EQ(read(*handle), model) << i;
  }
  const std::uint64_t encoded = filesystem_->statistics().writing.chunks_encoded;
  ASSERT_TRUE(filesystem_->files().allocate(*handle, kPunch, 64 << 10, model.size()));
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  std::fill(model.begin() + (64 << 10), model.end(), '\0');
  EXPECT_EQ(read(*handle), model);
  EXPECT_LT(filesystem_->statistics().writing.chunks_encoded - encoded, 40U);
  EXPECT_TRUE(close(std::move(handle)));
  const auto container = stored("x.b2nd");
  EXPECT_EQ(container->chunk_count(), 6667 * 2);
  EXPECT_EQ(container->locate_chunk(frame::ChunkNumber{910 * 2})->special, codec::SpecialValue::none);
  EXPECT_EQ(container->next_chunk(frame::ChunkNumber{911 * 2}, false)->value, 6667 * 2);
  remount();
  EXPECT_EQ(content("x"), model);
}

}  // namespace
}  // namespace cframefs::fs
