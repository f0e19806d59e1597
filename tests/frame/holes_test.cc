// The cost of holes depends on their number, not on their length: the bytes of a hole are known to be zeros without a
// read.
#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_layout.h"
#include "frame/cframe/offset_index.h"
#include "frame/io/byte_source.h"
#include "frame/repair/chunk_carver.h"
#include "frame/repair/salvage.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/temp_dir.h"

namespace cframefs::frame {
namespace {

using test::Bytes;

constexpr std::uint64_t kMebi = std::uint64_t{1} << 20;

class CountedFiles final : public test::ForwardingFiles {
 public:
  codec::Result<std::size_t> pread(OpenFile file, codec::ByteSpan into, FileOffset at) override {
    read_bytes += into.size();
    return ForwardingFiles::pread(file, into, at);
  }
  codec::Result<FileOffset> seek(OpenFile file, FileOffset from, int whence) override {
    ++seeks;
    return seeks_fail ? codec::io_error(EIO, "lseek") : ForwardingFiles::seek(file, from, whence);
  }
  std::atomic<std::uint64_t> read_bytes{0};
  std::atomic<int> seeks{0};
  bool seeks_fail = false;
};

class Holes : public ::testing::Test {
 protected:
  /// Makes a file with the parts at their offsets and holes between them.
  std::shared_ptr<const ByteSource> source(const std::vector<std::pair<std::uint64_t, Bytes>>& parts,
                                           std::uint64_t size, std::uint64_t begin = 0) {
    path_ = directory_.write("f.b2frame", {});
    const int fd = ::open(path_.c_str(), O_WRONLY | O_CLOEXEC);
    for (const auto& [at, bytes] : parts)
      EXPECT_EQ(::pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(at)), static_cast<ssize_t>(bytes.size()));
    EXPECT_EQ(::ftruncate(fd, static_cast<off_t>(size)), 0);
    const off_t hole = ::lseek(fd, 0, SEEK_HOLE);
    has_holes_ = hole >= 0 && static_cast<std::uint64_t>(hole) < size;
    ::close(fd);
    const auto file = std::make_shared<const Descriptor>(files_, files_.open_named(path_.string(), O_RDONLY).value());
    return file_source(files_, file, FileOffset{begin}, size - begin);
  }

  test::TempDir directory_;
  CountedFiles files_;
  std::filesystem::path path_;
  bool has_holes_ = false;
};

TEST_F(Holes, AreNotRead) {
  const auto file = source({{0, Bytes(100, 7)}, {64 * kMebi, Bytes(100, 8)}}, 128 * kMebi, 50);
  if (!has_holes_) GTEST_SKIP() << "no holes on this filesystem";
  EXPECT_EQ(file->zeros(FileOffset{0}), 0U);
  EXPECT_EQ(file->zeros(FileOffset{32 * kMebi}), 32 * kMebi - 50);
  EXPECT_EQ(file->zeros(FileOffset{64 * kMebi - 50}), 0U);
  EXPECT_EQ(file->zeros(FileOffset{127 * kMebi}), kMebi - 50) << "no data between here and the end";
  EXPECT_EQ(file->zeros(FileOffset{128 * kMebi - 50}), 0U);
  EXPECT_EQ(file->zeros(FileOffset{UINT64_MAX}), 0U);
  Bytes bytes(static_cast<std::size_t>(8 * kMebi), 1);
  ASSERT_TRUE(file->read(FileOffset{16 * kMebi}, bytes));
  EXPECT_EQ(bytes, Bytes(bytes.size(), 0));
  EXPECT_EQ(files_.read_bytes, 0U);
  ASSERT_TRUE(file->read(FileOffset{60 * kMebi}, bytes));
  EXPECT_EQ(bytes[4 * kMebi - 50], 8) << "a hole that ends within the read";
  EXPECT_FALSE(file->read(FileOffset{127 * kMebi}, bytes)) << "past the end";
  // After a truncation nothing is known about the bytes past the new end, and reads of them fail.
  ASSERT_EQ(::truncate(path_.c_str(), static_cast<off_t>(100 * kMebi)), 0);
  EXPECT_EQ(file->zeros(FileOffset{90 * kMebi}), 10 * kMebi - 50);
  EXPECT_EQ(file->zeros(FileOffset{110 * kMebi}), 0U);
  EXPECT_FALSE(file->read(FileOffset{110 * kMebi}, bytes));
}

TEST_F(Holes, AreReadIfTheSystemDoesNotReportThem) {
  const auto file = source({{0, Bytes(100, 7)}}, 64 * kMebi);
  files_.seeks_fail = true;
  EXPECT_EQ(file->zeros(FileOffset{kMebi}), 0U);
  Bytes bytes(static_cast<std::size_t>(kMebi), 1);
  ASSERT_TRUE(file->read(FileOffset{kMebi}, bytes));
  EXPECT_EQ(bytes, Bytes(bytes.size(), 0));
}

TEST_F(Holes, AreNotQueriedInFilesWithoutHoles) {
  const auto file = source({{0, Bytes(static_cast<std::size_t>(4 * kMebi), 7)}}, 4 * kMebi);
  Bytes bytes(static_cast<std::size_t>(kMebi));
  ASSERT_TRUE(file->read(FileOffset{kMebi}, bytes));
  EXPECT_EQ(file->zeros(FileOffset{kMebi}), 0U);
  EXPECT_EQ(files_.seeks, 0);
}

/// A frame of chunks of one byte, all at offset 0. Its index chunk is memcpyed, and its zeros are a hole of the file.
class HoleIndex : public Holes {
 protected:
  static constexpr std::int64_t kCount = 4 << 20;

  std::shared_ptr<const ByteSource> frame(std::size_t lost = 0) {
    test::FrameBuilder builder;
    builder.chunksize = 1;
    builder.nbytes = kCount;
    builder.chunk_section = test::plain_chunk(Bytes{7});
    builder.index = test::plain_chunk(Bytes(static_cast<std::size_t>(8 * kCount)), 8);
    const Bytes whole = builder.build();
    const std::size_t index_at = builder.header_length() + builder.chunk_section.size() + codec::kExtendedHeaderLength;
    const std::size_t trailer_at = index_at + static_cast<std::size_t>(8 * kCount);
    return source({{0, Bytes(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(index_at))},
                   {trailer_at, Bytes(whole.begin() + static_cast<std::ptrdiff_t>(trailer_at),
                                      whole.end() - static_cast<std::ptrdiff_t>(lost))}},
                  whole.size() - lost);
  }
};

TEST_F(HoleIndex, IsKnownWithoutBeingRead) {
  const auto opened = open_cframe(frame(), std::make_shared<IndexCache>());
  if (!has_holes_) GTEST_SKIP() << "no holes on this filesystem";
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto runs = (*opened)->runs(ChunkNumber{0}, ChunkNumber{kCount});
  std::int64_t next = 0;
  ChunkRun run;
  while (runs->next(run).value()) {
    ASSERT_EQ(run.first.value, next);
    ASSERT_EQ(run.damage, nullptr);
    ASSERT_EQ(run.same, 0);
    next += run.count;
  }
  EXPECT_EQ(next, kCount);
  EXPECT_EQ((*opened)->next_chunk(ChunkNumber{0}, true).value().value, kCount) << "no chunk is a hole";
  // The units at both ends of the hole, which also hold stored bytes, are decoded.
  EXPECT_LT(files_.read_bytes, kMebi);
}

TEST_F(HoleIndex, IsSkippedByTheSearchForChunks) {
  const auto file = frame();
  if (!has_holes_) GTEST_SKIP() << "no holes on this filesystem";
  ChunkSearch search;
  search.begin = layout::kMinHeaderLength;
  search.typesize = 1;
  search.most_nbytes = 1;
  files_.read_bytes = 0;
  const auto found = find_chunks(*file, search);
  ASSERT_TRUE(found);
  ASSERT_EQ(found->chunks.size(), 1U);
  EXPECT_EQ(found->chunks[0].nbytes, 1);
  EXPECT_LT(files_.read_bytes, 4 * kMebi);
}

TEST_F(HoleIndex, IsUsedWithoutATrailer) {
  const auto file = frame(10);
  if (!has_holes_) GTEST_SKIP() << "no holes on this filesystem";
  files_.read_bytes = 0;
  const auto salvage = open_damaged(file, std::make_shared<IndexCache>());
  ASSERT_TRUE(salvage) << describe(salvage.error());
  EXPECT_EQ(salvage->container->chunk_count(), kCount);
  EXPECT_LT(files_.read_bytes, 4 * kMebi);
}

}  // namespace
}  // namespace cframefs::frame
