// copy_file_range between frames: chunks go over as they are stored; what does not fit is refused, and nothing is done.
#include <cerrno>
#include <random>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/fs/written_filesystem.h"

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kChunk = 65536;

std::string noise(std::size_t size, unsigned seed) {
  std::mt19937 random(seed);
  std::string text(size, '\0');
  for (char& c : text)
    c = static_cast<char>('a' + random() % 4);
  return text;
}

class FrameCopies : public WrittenFilesystem {
 protected:
  void SetUp() override {
    options_.new_frames.chunksize = kChunk;
    options_.new_frames.typesize = 1;
    WrittenFilesystem::SetUp();
    options_.new_frames.chunksize = kChunk;
    remount();
  }
  std::unique_ptr<FileHandle> make(const std::string& name, const std::string& text) {
    auto handle = create(name);
    EXPECT_TRUE(write(*handle, 0, text));
    EXPECT_TRUE(filesystem_->files().sync(*handle, true));
    return handle;
  }
  codec::Result<std::uint64_t> copy(FileHandle& from, std::uint64_t from_at, FileHandle& to, std::uint64_t to_at,
                                    std::uint64_t length) {
    const auto decoded = filesystem_->statistics().decoding.blocks_decoded.load();
    const auto encoded = filesystem_->statistics().writing.chunks_encoded.load();
    const auto copied = filesystem_->statistics().writing.chunks_copied.load();
    auto done = filesystem_->files().copy_range(from, from_at, to, to_at, length);
    EXPECT_EQ(filesystem_->statistics().decoding.blocks_decoded.load(), decoded);
    was_encoded_ = filesystem_->statistics().writing.chunks_encoded.load() - encoded;
    was_copied_ = filesystem_->statistics().writing.chunks_copied.load() - copied;
    return done;
  }
  void drop(std::unique_ptr<FileHandle> handle) { EXPECT_TRUE(close(std::move(handle))); }

  std::uint64_t was_encoded_ = 0;
  std::uint64_t was_copied_ = 0;
};

TEST_F(FrameCopies, AWholeFileIsCopiedWithoutDecodingOrEncoding) {
  const std::string text = noise(5 * kChunk + 1234, 1);
  auto from = make("from", text);
  auto to = create("to");
  const auto done = copy(*from, 0, *to, 0, text.size());
  ASSERT_TRUE(done) << done.error().reason;
  EXPECT_EQ(*done, text.size());
  EXPECT_EQ(was_copied_, 6U);
  EXPECT_EQ(was_encoded_, 0U);
  EXPECT_EQ(read(*to), text);
  drop(std::move(to));
  drop(std::move(from));
  EXPECT_EQ(content("to"), text);
  EXPECT_LE(std::filesystem::file_size(directory_.path() / "to.b2frame"),
            std::filesystem::file_size(directory_.path() / "from.b2frame"));
}

TEST_F(FrameCopies, ChunksGoIntoTheMiddleOfAnother) {
  const std::string text = noise(8 * kChunk, 1);
  std::string wanted = noise(9 * kChunk + 77, 2);
  auto from = make("from", text);
  auto to = make("to", wanted);
  ASSERT_EQ(copy(*from, 2 * kChunk, *to, 3 * kChunk, 5 * kChunk).value_or(0), 5 * kChunk);
  wanted.replace(3 * kChunk, 5 * kChunk, text, 2 * kChunk, 5 * kChunk);
  EXPECT_EQ(read(*to), wanted);
  // Over the short last chunk and past it.
  ASSERT_EQ(copy(*from, 0, *to, 8 * kChunk, 8 * kChunk).value_or(0), 8 * kChunk);
  wanted.replace(8 * kChunk, std::string::npos, text);
  EXPECT_EQ(read(*to), wanted);
  drop(std::move(to));
  drop(std::move(from));
  remount();
  EXPECT_EQ(content("to"), wanted);
}

TEST_F(FrameCopies, WithinOneFile) {
  std::string text = noise(12 * kChunk + 5, 3);
  auto file = make("x", text);
  ASSERT_EQ(copy(*file, 0, *file, 6 * kChunk, 6 * kChunk).value_or(0), 6 * kChunk);
  text.replace(6 * kChunk, 6 * kChunk, text, 0, 6 * kChunk);
  EXPECT_EQ(read(*file), text);
  drop(std::move(file));
  EXPECT_EQ(content("x"), text);
}

TEST_F(FrameCopies, PastTheEndTheGapIsZeros) {
  const std::string text = noise(4 * kChunk, 4);
  auto from = make("from", text);
  std::string wanted = noise(kChunk + 100, 5);
  auto to = make("to", wanted);
  const auto done = filesystem_->files().copy_range(*from, 0, *to, 5 * kChunk, text.size());
  ASSERT_TRUE(done) << done.error().reason;
  wanted.resize(5 * kChunk);
  wanted += text;
  EXPECT_EQ(read(*to), wanted);
  drop(std::move(to));
  drop(std::move(from));
  EXPECT_EQ(content("to"), wanted);
}

TEST_F(FrameCopies, HolesStayHoles) {
  auto from = create("from");
  ASSERT_TRUE(resize(*from, 100 * kChunk));
  ASSERT_TRUE(write(*from, 50 * kChunk, "in the middle"));
  auto to = create("to");
  ASSERT_EQ(copy(*from, 0, *to, 0, 100 * kChunk).value_or(0), 100 * kChunk);
  drop(std::move(to));
  drop(std::move(from));
  EXPECT_LT(std::filesystem::file_size(directory_.path() / "to.b2frame"), 2000U);
  auto again = open("to", O_RDONLY);
  EXPECT_EQ(read(*again, 50 * kChunk, 13), "in the middle");
  filesystem_->files().release(std::move(again));
}

TEST_F(FrameCopies, WhatIsNotCommittedYetIsCopiedAndOverwritten) {
  std::string text = noise(6 * kChunk, 6);
  auto from = make("from", text);
  auto to = make("to", noise(7 * kChunk, 7));
  std::string wanted = read(*to);
  ASSERT_TRUE(write(*from, 10, "dirty source"));
  text.replace(10, 12, "dirty source");
  ASSERT_TRUE(write(*to, 5 * kChunk + 9, "gone"));
  ASSERT_TRUE(write(*to, 6 * kChunk + 9, "kept"));
  wanted.replace(6 * kChunk + 9, 4, "kept");
  const auto done = filesystem_->files().copy_range(*from, 0, *to, 0, text.size());
  ASSERT_EQ(done.value_or(0), text.size());
  wanted.replace(0, text.size(), text);
  EXPECT_EQ(read(*to), wanted);
  ASSERT_TRUE(write(*to, 3, "after"));
  wanted.replace(3, 5, "after");
  drop(std::move(to));
  drop(std::move(from));
  EXPECT_EQ(content("to"), wanted);
}

TEST_F(FrameCopies, WhatDoesNotFitIsLeftToTheKernel) {
  const std::string text = noise(8 * kChunk + 9, 8);
  auto from = make("from", text);
  auto to = make("to", noise(8 * kChunk, 9));
  const std::string before = read(*to);
  EXPECT_EQ(errno_of(copy(*from, 1, *to, 0, 4 * kChunk)), EOPNOTSUPP) << "no beginning of a chunk";
  EXPECT_EQ(errno_of(copy(*from, 0, *to, 1, 4 * kChunk)), EOPNOTSUPP) << "no place for a chunk";
  EXPECT_EQ(errno_of(copy(*from, 0, *to, 0, kChunk)), EOPNOTSUPP) << "not worth a commit";
  EXPECT_EQ(errno_of(copy(*from, 8 * kChunk, *to, 0, 4 * kChunk)), EOPNOTSUPP) << "a short chunk inside";
  EXPECT_EQ(read(*to), before);
  // Of a part of a chunk at the end the whole ones before it are copied.
  EXPECT_EQ(copy(*from, 0, *to, 0, 5 * kChunk + 17).value_or(0), 5 * kChunk);
  drop(std::move(to));
  drop(std::move(from));
}

TEST_F(FrameCopies, FramesOfOtherChunksAreLeftToTheKernel) {
  const std::string text = noise(8 * kChunk, 10);
  drop(make("from", text));
  drop(make("same", ""));
  options_.new_frames.chunksize = 2 * kChunk;
  remount();
  auto from = open("from", O_RDONLY);
  auto to = create("to");
  EXPECT_EQ(errno_of(copy(*from, 0, *to, 0, text.size())), EOPNOTSUPP) << "other chunks were asked for";
  EXPECT_EQ(read(*to), "");
  drop(std::move(to));
  filesystem_->files().release(std::move(from));
  options_.new_frames.chunksize = 0;
  remount();
  from = open("from", O_RDONLY);
  to = create("other");
  EXPECT_EQ(copy(*from, 0, *to, 0, text.size()).value_or(0), text.size()) << "any chunks will do";
  drop(std::move(to));
  filesystem_->files().release(std::move(from));
  EXPECT_EQ(stored("other.b2frame")->parameters().chunksize, static_cast<std::int32_t>(kChunk));
  EXPECT_EQ(content("other"), text);
}

// semantics: Y2
TEST_F(FrameCopies, ADamagedChunkIsNotCopiedInSilence) {
  const std::string text = noise(8 * kChunk, 11);
  drop(make("from", text));
  auto frame = stored("from.b2frame");
  const auto location = frame->locate_chunk(frame::ChunkNumber{3});
  ASSERT_TRUE(location);
  auto bytes = test::file_bytes(directory_.path() / "from.b2frame");
  bytes[location->offset.value + 4] ^= 0xff;  // its plain length
  directory_.write("from.b2frame", bytes);
  remount();
  auto from = open("from", O_RDONLY);
  auto to = create("to");
  EXPECT_EQ(copy(*from, 0, *to, 0, text.size()).value_or(0), 3 * kChunk);
  EXPECT_EQ(errno_of(copy(*from, 3 * kChunk, *to, 3 * kChunk, 5 * kChunk)), EOPNOTSUPP);
  drop(std::move(to));
  filesystem_->files().release(std::move(from));
}

TEST_F(FrameCopies, AFullDiskLeavesTheOldStateAndARetrySucceeds) {
  const std::string text = noise(8 * kChunk, 12);
  auto from = make("from", text);
  auto to = make("to", noise(6 * kChunk, 13));
  const std::string before = read(*to);
  disk_.write_error = ENOSPC;
  EXPECT_EQ(errno_of(copy(*from, 0, *to, 0, text.size())), ENOSPC);
  EXPECT_EQ(read(*to), before);
  disk_.write_error = 0;
  EXPECT_EQ(copy(*from, 0, *to, 0, text.size()).value_or(0), text.size());
  EXPECT_EQ(read(*to), text);
  drop(std::move(to));
  drop(std::move(from));
}

TEST_F(FrameCopies, SomebodyElsesChangeOfTheTargetIsStale) {
  const std::string text = noise(8 * kChunk, 14);
  drop(make("other", noise(5 * kChunk, 15)));
  auto from = make("from", text);
  auto to = make("to", noise(6 * kChunk, 16));
  ASSERT_TRUE(write(*to, 0, "not committed"));
  std::filesystem::copy_file(directory_.path() / "other.b2frame", directory_.path() / "to.b2frame",
                             std::filesystem::copy_options::overwrite_existing);
  EXPECT_EQ(errno_of(filesystem_->files().copy_range(*from, 0, *to, 0, text.size())), ESTALE);
  drop(std::move(from));
  EXPECT_EQ(errno_of(close(std::move(to))), ESTALE);
  EXPECT_EQ(content("to"), content("other"));
}

TEST_F(FrameCopies, WritersBesideACopyLoseNothing) {
  const std::string text = noise(16 * kChunk, 17);
  auto from = make("from", text);
  auto to = make("to", std::string(16 * kChunk + 8, '.'));
  std::thread writer([&] {
    for (int i = 0; i < 200; ++i)
      EXPECT_TRUE(write(*to, 16 * kChunk, std::to_string(10'000'000 + i)));
  });
  for (int i = 0; i < 20; ++i) {
    auto copied = filesystem_->files().copy_range(*from, 0, *to, 0, text.size());
    // Nothing is copied where the writer was quicker at each attempt; the kernel then reads and writes.
    while (errno_of(copied) == EOPNOTSUPP)
      copied = filesystem_->files().copy_range(*from, 0, *to, 0, text.size());
    EXPECT_EQ(copied.value_or(0), text.size()) << errno_of(copied);
  }
  writer.join();
  EXPECT_EQ(read(*to, 0, 17 * kChunk), text + "10000199");
  drop(std::move(to));
  drop(std::move(from));
}

/// Of a caller that has been answered for when its change is to begin.
class RefusedPermit final : public ChangePermit {
 public:
  codec::Result<void> begin() override { return codec::io_error(EINTR, "change"); }
  void end() override {}
};

TEST_F(FrameCopies, ACopyWhoseCallerHasGoneChangesNothing) {
  const std::string text = noise(8 * kChunk, 18);
  const std::string before = noise(6 * kChunk, 19);
  auto from = make("from", text);
  auto to = make("to", before);
  auto empty = create("new");
  RefusedPermit refused;
  const auto errors = filesystem_->statistics().writing.failed_commits.load();
  EXPECT_EQ(errno_of(filesystem_->files().copy_range(*from, 0, *to, 0, text.size(), refused)), EINTR);
  EXPECT_EQ(errno_of(filesystem_->files().copy_range(*from, 0, *to, 7 * kChunk, text.size(), refused)), EINTR);
  EXPECT_EQ(errno_of(filesystem_->files().copy_range(*from, 0, *empty, 0, text.size(), refused)), EINTR);
  EXPECT_EQ(filesystem_->statistics().writing.failed_commits.load(), errors);
  EXPECT_EQ(read(*to), before);
  EXPECT_EQ(read(*empty), "");
  EXPECT_TRUE(write(*empty, 0, "of this program"));
  EXPECT_EQ(copy(*from, 0, *to, 0, text.size()).value_or(0), text.size());
  EXPECT_EQ(read(*to), text);
  drop(std::move(empty));
  drop(std::move(to));
  drop(std::move(from));
  EXPECT_EQ(content("to"), text);
  EXPECT_EQ(content("new"), "of this program");
}

}  // namespace
}  // namespace cframefs::fs
