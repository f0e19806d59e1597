// Written bytes before they are committed: chunks that are encoded early, small writes that are kept as patches, and
// both against a string as a model.
#include <algorithm>
#include <atomic>
#include <cerrno>
#include <fstream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <linux/falloc.h>
#include <rapidcheck/gtest.h>

#include "fs/write/chunk_patches.h"
#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kAheadChunk = 4096;  // of WrittenFilesystem

std::string some_text(std::uint64_t length, unsigned seed) {
  std::string text(length, '\0');
  for (std::size_t i = 0; i < length; ++i)
    text[i] = static_cast<char>('a' + (i * 7 + i / 251 * seed + seed) % 26);
  return text;
}

RC_GTEST_PROP(ChunkPatches, HoldExactlyTheWrittenBytes, ()) {
  constexpr std::uint64_t kSize = 200;
  std::atomic<std::uint64_t> counter{0};
  {
    ChunkPatches patches(counter);
    std::vector<int> model(kSize, -1);  // -1: not written
    const auto steps = *rc::gen::inRange(1, 30);
    for (int step = 0; step < steps; ++step) {
      const auto from = *rc::gen::inRange<std::uint64_t>(0, kSize);
      if (*rc::gen::inRange(0, 8) == 0) {
        patches.cut(from);
        std::fill(model.begin() + static_cast<std::ptrdiff_t>(from), model.end(), -1);
        continue;
      }
      const auto length = *rc::gen::inRange<std::uint64_t>(1, kSize - from + 1);
      const std::vector<std::uint8_t> bytes(length, static_cast<std::uint8_t>(step));
      patches.write(from, bytes);
      std::fill_n(model.begin() + static_cast<std::ptrdiff_t>(from), length, step);
    }
    std::vector<int> seen(kSize, -1);
    std::uint64_t end = 0;
    for (const auto& [from, piece] : patches.pieces()) {
      RC_ASSERT(!piece.empty());
      RC_ASSERT(from > end || seen[0] == -1);  // no piece touches the one before
      end = from + piece.size();
      std::copy(piece.begin(), piece.end(), seen.begin() + static_cast<std::ptrdiff_t>(from));
    }
    RC_ASSERT(seen == model);
    std::vector<std::uint8_t> plain(kSize, 99);
    patches.apply_to(plain);
    for (std::size_t i = 0; i < kSize; ++i)
      RC_ASSERT(plain[i] == (model[i] < 0 ? 99 : model[i]));
    const auto written = std::find(model.begin(), model.end(), -1) - model.begin();
    RC_ASSERT(patches.covers(static_cast<std::uint64_t>(written)));
    RC_ASSERT(written == kSize || !patches.covers(static_cast<std::uint64_t>(written) + 1));
    RC_ASSERT(counter == patches.footprint());
  }
  RC_ASSERT(counter == 0U);
}

class EarlyEncodingTest : public WrittenFilesystem {
 protected:
  /// Makes a committed frame of `length` bytes and returns them.
  std::string make(const std::string& name, std::uint64_t length) {
    std::string text = some_text(length, 1);
    auto handle = create(name);
    EXPECT_TRUE(write(*handle, 0, text));
    EXPECT_TRUE(close(std::move(handle)));
    return text;
  }
  /// Makes a stored chunk unreadable, by a wrong nbytes in its header.
  bool damage(const std::string& name, std::int64_t chunk) {
    const auto location = stored(name)->locate_chunk(frame::ChunkNumber{chunk});
    if (!location) return false;
    std::fstream file(directory_.path() / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(static_cast<std::streamoff>(location->offset.value + 4));
    file.write("\1\2\3\4", 4);
    return file.good();
  }
  std::uint64_t decoded() { return filesystem_->statistics().decoding.bytes_decoded; }
  std::uint64_t encoded() { return filesystem_->statistics().writing.chunks_encoded; }
};

TEST_F(EarlyEncodingTest, SmallWritesAllOverAFileReadAndEncodeEachChunkOnce) {
  std::string expected = make("x", 40 * kAheadChunk);
  remount();
  auto handle = open("x");
  for (int round = 0; round < 5; ++round) {
    for (std::uint64_t chunk = 0; chunk < 40; chunk += 2) {
      const std::uint64_t at = chunk * kAheadChunk + static_cast<std::uint64_t>(round) * 700;
      ASSERT_TRUE(write(*handle, at, "patched"));
      expected.replace(at, 7, "patched");
    }
  }
  EXPECT_EQ(decoded(), 0U);
  ASSERT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(decoded(), 20 * kAheadChunk);
  EXPECT_EQ(encoded(), 20U);
  EXPECT_EQ(read(*handle), expected);
  EXPECT_TRUE(close(std::move(handle)));
  remount();
  EXPECT_EQ(content("x"), expected);
}

TEST_F(EarlyEncodingTest, SmallWritesTakeNoMoreMemoryThanTheyHaveBytes) {
  make("x", 40 * kAheadChunk);
  auto handle = open("x");
  for (std::uint64_t chunk = 0; chunk < 40; ++chunk)
    ASSERT_TRUE(write(*handle, chunk * kAheadChunk + 5, "few"));
  EXPECT_LT(handle->frame->write_back()->uncommitted().memory, 40 * 512);
  EXPECT_TRUE(close(std::move(handle)));
}

TEST_F(EarlyEncodingTest, AChunkThatIsOverwrittenInPartsIsNotRead) {
  std::string expected = make("x", 8 * kAheadChunk);
  remount();
  auto handle = open("x");
  const std::string half = some_text(kAheadChunk / 2, 9);
  for (std::uint64_t at = 2 * kAheadChunk; at < 6 * kAheadChunk; at += half.size()) {
    ASSERT_TRUE(write(*handle, at, half));
    expected.replace(at, half.size(), half);
  }
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(decoded(), 0U);
  EXPECT_EQ(encoded(), 4U);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), expected);
}

TEST_F(EarlyEncodingTest, AStreamIsEncodedBeforeItIsSynced) {
  make("x", 2 * kAheadChunk);
  remount();
  auto handle = open("x");
  const std::string more = some_text(30 * kAheadChunk, 3);
  ASSERT_TRUE(write(*handle, 2 * kAheadChunk, more));
  // Encoded without a request for it.
  for (int i = 0; i < 6000 && encoded() < 30; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(encoded(), 30U);
  EXPECT_EQ(stored("x.b2frame")->parameters().nbytes, 2 * kAheadChunk);
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_EQ(encoded(), 30U);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), some_text(2 * kAheadChunk, 1) + more);
}

TEST_F(EarlyEncodingTest, AChangeOfAChunkThatWasEncodedEarlyIsCommitted) {
  std::string expected = make("x", 2 * kAheadChunk);
  auto handle = open("x");
  const std::string more = some_text(10 * kAheadChunk, 3);
  ASSERT_TRUE(write(*handle, expected.size(), more));
  expected += more;
  for (int i = 0; i < 6000 && encoded() < 12; ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  // Overwrites one chunk, punches a hole into another, and truncates inside a third.
  ASSERT_TRUE(write(*handle, 4 * kAheadChunk + 10, "changed"));
  expected.replace(4 * kAheadChunk + 10, 7, "changed");
  ASSERT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_ZERO_RANGE, 6 * kAheadChunk + 100, 50));
  std::fill_n(expected.begin() + 6 * kAheadChunk + 100, 50, '\0');
  ASSERT_TRUE(resize(*handle, 9 * kAheadChunk + 7));
  ASSERT_TRUE(resize(*handle, 10 * kAheadChunk));
  expected.resize(9 * kAheadChunk + 7);
  expected.resize(10 * kAheadChunk);
  EXPECT_EQ(read(*handle), expected);
  EXPECT_TRUE(close(std::move(handle)));
  EXPECT_EQ(content("x"), expected);
}

TEST_F(EarlyEncodingTest, PatchesOverAnUnreadableChunkAreReportedAndDoNotBlockOthers) {
  const std::string text = make("x", 8 * kAheadChunk);
  stop();
  ASSERT_TRUE(damage("x.b2frame", 3));
  start();
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, kAheadChunk + 5, "kept"));
  ASSERT_TRUE(write(*handle, 3 * kAheadChunk + 5, "lost"));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), EIO);
  // All other data are kept.
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(close(std::move(handle)));
  std::string expected = text.substr(0, 3 * kAheadChunk);
  expected.replace(kAheadChunk + 5, 4, "kept");
  handle = open("x", O_RDONLY);
  EXPECT_EQ(read(*handle, 0, 3 * kAheadChunk), expected);
  EXPECT_EQ(read(*handle, 4 * kAheadChunk), text.substr(4 * kAheadChunk));
  filesystem_->files().release(std::move(handle));
}

TEST_F(EarlyEncodingTest, ALossInABackgroundCommitIsReportedByTheNextSync) {
  options_.commit_interval = 0.01;
  make("x", 4 * kAheadChunk);
  stop();
  ASSERT_TRUE(damage("x.b2frame", 2));
  start();
  auto handle = open("x");
  ASSERT_TRUE(write(*handle, 2 * kAheadChunk + 5, "lost"));
  const auto writer = handle->frame->write_back();
  for (int i = 0; i < 6000 && writer->dirty_since_write(); ++i)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_EQ(errno_of(filesystem_->files().sync(*handle, false)), EIO);
  EXPECT_TRUE(filesystem_->files().sync(*handle, false));
  EXPECT_TRUE(close(std::move(handle)));
}

/// Random changes of one file, with commits that fail in between, against a string.
class Story {
 public:
  explicit Story(unsigned seed) : chance_(seed) {}
  std::uint64_t below(std::uint64_t bound) {
    return std::uniform_int_distribution<std::uint64_t>(0, bound - 1)(chance_);
  }

  std::string text;

 private:
  std::mt19937 chance_;
};

TEST_F(EarlyEncodingTest, RandomChangesWithCommitsThatFailAgreeWithAString) {
  constexpr std::uint64_t kMost = 30 * kAheadChunk;
  for (unsigned seed = 1; seed <= 12; ++seed) {
    options_.dirty_limit = seed % 3 == 0 ? 32 * kAheadChunk : 1 << 20;
    remount();
    Story story(seed);
    auto handle = create("x", O_RDWR | O_TRUNC);
    for (int step = 0; step < 400; ++step) {
      SCOPED_TRACE("seed " + std::to_string(seed) + ", step " + std::to_string(step));
      const std::uint64_t at = story.below(kMost);
      const std::uint64_t length = 1 + story.below(story.below(4) == 0 ? 3 * kAheadChunk : 300);
      switch (story.below(12)) {
        case 0: {
          ASSERT_TRUE(resize(*handle, at));
          story.text.resize(at);
          break;
        }
        case 1: {
          ASSERT_TRUE(filesystem_->files().allocate(*handle, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, at, length));
          for (std::uint64_t i = at; i < std::min<std::uint64_t>(at + length, story.text.size()); ++i)
            story.text[i] = '\0';
          break;
        }
        case 2:
          ASSERT_TRUE(filesystem_->files().sync(*handle, false));
          break;
        case 3: {
          disk_.write_error = EIO;
          static_cast<void>(filesystem_->files().flush(*handle));
          disk_.write_error = 0;
          break;
        }
        case 4:
          ASSERT_EQ(read(*handle, at, length), at < story.text.size() ? story.text.substr(at, length) : "");
          break;
        default: {
          const std::string bytes = some_text(length, seed + static_cast<unsigned>(step));
          ASSERT_TRUE(write(*handle, at, bytes));
          if (story.text.size() < at + length) story.text.resize(at + length);
          story.text.replace(at, length, bytes);
        }
      }
      ASSERT_EQ(handle->frame->write_back()->status().size, story.text.size());
    }
    ASSERT_EQ(read(*handle), story.text);
    ASSERT_TRUE(close(std::move(handle)));
    ASSERT_EQ(content("x"), story.text);
  }
}

}  // namespace
}  // namespace cframefs::fs
