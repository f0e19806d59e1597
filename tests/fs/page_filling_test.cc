// Which reads have the kernel fill the rest of a block, and with what range.
#include <algorithm>
#include <cstdint>
#include <vector>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kFilledPage = 4096;
constexpr std::uint64_t kFilledBlock = std::uint64_t{128} << 10;
constexpr std::uint64_t kFilledChunk = 4 * kFilledBlock;
constexpr std::uint64_t kFilledChunks = 3;
constexpr std::uint64_t kFilledLast = 1000;  // bytes of the last chunk

/// Records what is to be filled.
class RecordingFiller final : public PageFiller {
 public:
  struct Call {
    NodeId node = 0;
    std::uint64_t state = 0;
    std::uint64_t at = 0;
    std::uint64_t length = 0;
  };
  bool fill(NodeId node, std::uint64_t state, std::uint64_t at, std::uint64_t length) override {
    calls.push_back({node, state, at, length});
    return accepts;
  }
  std::vector<Call> calls;
  bool accepts = true;
};

class PageFilling : public WrittenFilesystem {
 protected:
  void SetUp() override {
    WrittenFilesystem::SetUp();
    stop();
    filesystem_ = std::make_unique<Filesystem>(*files_, options_);
    ASSERT_TRUE(filesystem_->open_source(false));
    filesystem_->start(kernel_, {}, {}, &filler_);
  }
  /// Puts a frame on the disk, whose chunks hold blocks or plain bytes.
  void make_frame(const std::string& name, bool has_blocks) {
    test::Bytes plain(kFilledChunks * kFilledChunk + kFilledLast);
    for (std::size_t i = 0; i < plain.size(); ++i)
      plain[i] = static_cast<std::uint8_t>(i * i >> 9U);
    test::FrameBuilder builder = test::plain_frame(plain, static_cast<std::int32_t>(kFilledChunk));
    builder.blocksize = static_cast<std::int32_t>(kFilledBlock);
    if (has_blocks) {
      builder.chunk_section.clear();
      std::vector<std::int64_t> entries;
      for (std::size_t at = 0; at < plain.size(); at += kFilledChunk) {
        entries.push_back(static_cast<std::int64_t>(builder.chunk_section.size()));
        const codec::ByteView part =
            codec::ByteView(plain).subspan(at, std::min<std::size_t>(kFilledChunk, plain.size() - at));
        const test::Bytes chunk = test::raw_block_chunk(part, static_cast<std::uint32_t>(kFilledBlock));
        builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
      }
      builder.index = test::plain_index(entries);
    }
    directory_.write(name + ".b2frame", builder.build());
    let_settle(name);
  }
  /// Reads one page for the page cache.
  void read_page(FileHandle& handle, std::uint64_t at, bool holds_pages = true) {
    Reply reply;
    ASSERT_TRUE(filesystem_->files().read(handle, at, kFilledPage, reply, holds_pages));
  }

  RecordingFiller filler_;
};

TEST_F(PageFilling, TheSecondSmallReadOfABlockFillsIt) {
  make_frame("x", true);
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  read_page(*handle, kFilledChunk + 2 * kFilledBlock);
  read_page(*handle, kFilledChunk + 3 * kFilledBlock);
  EXPECT_TRUE(filler_.calls.empty());
  read_page(*handle, kFilledChunk + 2 * kFilledBlock + 7 * kFilledPage);
  ASSERT_EQ(filler_.calls.size(), 1U);
  EXPECT_EQ(filler_.calls[0].node, handle->node->id);
  EXPECT_EQ(filler_.calls[0].at, kFilledChunk + 2 * kFilledBlock);
  EXPECT_EQ(filler_.calls[0].length, kFilledBlock);
  read_page(*handle, kFilledChunk + 2 * kFilledBlock + 8 * kFilledPage);
  EXPECT_EQ(filler_.calls.size(), 1U);
  filesystem_->files().release(std::move(handle));
}

TEST_F(PageFilling, APlainChunkIsFilledInParts) {
  make_frame("x", false);
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  read_page(*handle, 2 * kFilledChunk + 3 * kFilledBlock + kFilledPage);
  read_page(*handle, 2 * kFilledChunk + 4 * kFilledBlock - kFilledPage);
  ASSERT_EQ(filler_.calls.size(), 1U);
  EXPECT_EQ(filler_.calls[0].at, 2 * kFilledChunk + 3 * kFilledBlock);
  EXPECT_EQ(filler_.calls[0].length, kFilledBlock);
  filesystem_->files().release(std::move(handle));
}

TEST_F(PageFilling, ReadsThatBypassThePageCacheFillNothing) {
  make_frame("x", true);
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  for (std::uint64_t page = 0; page < 10; ++page)
    read_page(*handle, kFilledChunk + page * kFilledPage, false);
  EXPECT_TRUE(filler_.calls.empty());
  filesystem_->files().release(std::move(handle));
}

// The requests of a kernel whose read-ahead grows.
TEST_F(PageFilling, ASequentialReaderFillsNothing) {
  make_frame("x", true);
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  std::uint64_t at = 0;
  for (std::uint64_t length = 4 * kFilledPage; at < 2 * kFilledChunk; length = std::min(2 * length, kFilledBlock)) {
    Reply reply;
    ASSERT_TRUE(filesystem_->files().read(*handle, at, length, reply, true));
    at += length;
  }
  EXPECT_TRUE(filler_.calls.empty());
  filesystem_->files().release(std::move(handle));
}

TEST_F(PageFilling, AFileThatIsOpenForWritingIsNotFilled) {
  make_frame("x", true);
  auto reader = open("x", O_RDONLY);
  auto writer = open("x", O_WRONLY);
  ASSERT_TRUE(reader && writer);
  for (std::uint64_t page = 0; page < 10; ++page)
    read_page(*reader, kFilledChunk + page * kFilledPage);
  EXPECT_TRUE(filler_.calls.empty());
  EXPECT_TRUE(close(std::move(writer)));
  read_page(*reader, kFilledChunk);
  read_page(*reader, kFilledChunk + kFilledPage);
  EXPECT_EQ(filler_.calls.size(), 1U);
  filesystem_->files().release(std::move(reader));
}

TEST_F(PageFilling, AFillingThatIsRefusedIsRequestedAgain) {
  make_frame("x", true);
  auto handle = open("x", O_RDONLY);
  ASSERT_TRUE(handle);
  filler_.accepts = false;
  for (std::uint64_t page = 0; page < 4; ++page)
    read_page(*handle, kFilledChunk + page * kFilledPage);
  EXPECT_EQ(filler_.calls.size(), 2U);
  filesystem_->files().release(std::move(handle));
}

TEST_F(PageFilling, AnotherContentHasAnotherState) {
  make_frame("x", true);
  const auto fill = [&] {
    auto handle = open("x", O_RDONLY);
    ASSERT_TRUE(handle);
    read_page(*handle, kFilledChunk);
    read_page(*handle, kFilledChunk + kFilledPage);
    filesystem_->files().release(std::move(handle));
  };
  fill();
  make_frame("x", false);
  fill();
  ASSERT_EQ(filler_.calls.size(), 2U);
  EXPECT_NE(filler_.calls[0].state, filler_.calls[1].state);
}

}  // namespace
}  // namespace cframefs::fs
