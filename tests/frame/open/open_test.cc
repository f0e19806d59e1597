// Detecting and opening containers: the number of reads, frames inside other files, files that are being written.
#include "frame/open/open.h"

#include <chrono>

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "frame/cframe/frame_layout.h"
#include "frame/container/chunk_reader.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using frame::ContainerKind;
using frame::Descriptor;
using frame::FileOffset;
using frame::system_files;
using test::Bytes;
using test::FaultyFiles;
using test::FrameBuilder;
using test::TempDir;

codec::Result<frame::Summary> summary_of(const std::filesystem::path& path, std::uint64_t begin = 0) {
  const auto fd = system_files().open_named(path.string(), O_RDONLY);
  if (!fd) return codec::Failure(fd.error());
  const Descriptor file(system_files(), *fd);
  return frame::summarise(system_files(), file.handle(), FileOffset{begin});
}

TEST(Summary, TellsSizesFromTheHeaderAlone) {
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")) {
    const auto summary = summary_of(row.file("path"), static_cast<std::uint64_t>(row.number("offset")));
    ASSERT_TRUE(summary) << row["path"] << describe(summary.error());
    const bool directory = std::filesystem::is_directory(row.file("path"));
    EXPECT_EQ(summary->kind, directory ? ContainerKind::sframe : ContainerKind::cframe) << row["path"];
    EXPECT_EQ(summary->nbytes, static_cast<std::uint64_t>(row.number("nbytes"))) << row["path"];
    EXPECT_EQ(summary->chunksize, row.number("chunksize")) << row["path"];
  }
}

TEST(Summary, OtherFilesAreNone) {
  const TempDir temp;
  const Bytes text = {'p', 'l', 'a', 'i', 'n', '\n'};
  EXPECT_EQ(summary_of(temp.write("text", text))->kind, ContainerKind::none);
  EXPECT_EQ(summary_of(temp.write("empty", {}))->kind, ContainerKind::none);
  EXPECT_EQ(summary_of(temp.path())->kind, ContainerKind::none);
  EXPECT_EQ(summary_of("/dev/null")->kind, ContainerKind::none);
  // The index file of a sparse frame is not a container without its directory.
  EXPECT_EQ(summary_of(test::golden_dir() / "malformed/sframe/good.b2frame/chunks.b2frame")->kind, ContainerKind::none);
}

TEST(Summary, ADamagedHeaderIsDamageAndALegacyOneUnsupported) {
  const TempDir temp;
  Bytes bytes = test::plain_frame(Bytes(1000), 100).build();
  Bytes cut = bytes;
  cut.resize(50);
  EXPECT_EQ(summary_of(temp.write("cut", cut)).error().kind, codec::ErrorKind::corruption);
  cut = bytes;
  cut.pop_back();
  EXPECT_EQ(summary_of(temp.write("shorter", cut)).error().kind, codec::ErrorKind::corruption);
  bytes[0] = 0x9d;
  EXPECT_EQ(summary_of(temp.write("beta", bytes)).error().kind, codec::ErrorKind::unsupported);
}

TEST(Summary, TakesOneRead) {
  FaultyFiles files;
  const std::string path = (test::golden_dir() / "malformed/good/base-lz4.b2frame").string();
  const auto fd = files.open_named(path, O_RDONLY);
  ASSERT_TRUE(fd);
  const Descriptor file(files, *fd);
  ASSERT_TRUE(frame::summarise(files, file.handle()));
  EXPECT_EQ(files.reads(), 1);
  EXPECT_LE(files.bytes(), 87);
}

/// Sets the times of a file far back, so that it does not count as being written.
void make_old(const std::filesystem::path& path) {
  const struct timespec times[2] = {{1'000'000'000, 0}, {1'000'000'000, 0}};
  ASSERT_EQ(::utimensat(AT_FDCWD, path.c_str(), times, 0), 0);
}

/// Makes a frame of `count` chunks of 8 bytes, with an index in blocks of 16 KiB like those of C-Blosc2.
Bytes many_chunks(std::size_t count) {
  FrameBuilder builder;
  builder.chunksize = 8;
  builder.nbytes = static_cast<std::int64_t>(count) * 8;
  Bytes plain_entries(count * 8);
  for (std::size_t i = 0; i < count; ++i) {
    Bytes content(8);
    codec::store_le(content.data(), static_cast<std::uint64_t>(i));
    const Bytes chunk = test::plain_chunk(content);
    codec::store_le(&plain_entries[i * 8], static_cast<std::int64_t>(builder.chunk_section.size()));
    builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
  }
  builder.index = test::raw_block_chunk(plain_entries, 16384);
  return builder.build();
}

struct Cost {
  std::int64_t reads = 0;
  std::int64_t bytes = 0;
};

Cost cost_of_first_byte(const std::string& path, std::uint64_t at) {
  FaultyFiles files;
  const auto opened = frame::open_path(files, path, nullptr);
  EXPECT_TRUE(opened) << describe(opened.error());
  const auto byte = test::read_range(frame::FlatView(*opened), at, 1);
  EXPECT_TRUE(byte);
  EXPECT_EQ((*byte)[0], (at / 8) & 0xff);
  return {files.reads(), files.bytes()};
}

TEST(Open, ReadsAboutAsMuchOfAMillionChunksAsOfAThousand) {
  const TempDir temp;
  const auto small = temp.write("small", many_chunks(1000));
  const auto large = temp.write("large", many_chunks(1'000'000));
  make_old(small);
  make_old(large);
  const Cost few = cost_of_first_byte(small.string(), 0);
  const Cost many = cost_of_first_byte(large.string(), 8 * 777'777);
  EXPECT_LE(few.reads, 6);
  EXPECT_LE(many.reads, few.reads + 1);
  EXPECT_LE(many.bytes, 2 * few.bytes);
}

TEST(Open, ASmallFrameTakesOneRead) {
  const TempDir temp;
  const auto path = temp.write("x.b2frame", test::plain_frame(Bytes(1000), 100).build());
  make_old(path);
  FaultyFiles files;
  ASSERT_TRUE(frame::open_path(files, path.string(), nullptr));
  EXPECT_EQ(files.reads(), 1);
}

TEST(Open, AFrameInsideAnotherFileIsReadAtItsOffset) {
  const TempDir temp;
  Bytes plain(5000);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::uint8_t>(i * 3);
  Bytes bytes(12345, 0x9e);
  const Bytes frame = test::plain_frame(plain, 700).build();
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  bytes.insert(bytes.end(), 999, 0xa8);
  const auto path = temp.write("archive", bytes);
  const auto opened = test::open_frame(path.string(), 12345);
  ASSERT_TRUE(opened) << describe(opened.error());
  const auto content = test::read_range(frame::FlatView(*opened), 0, plain.size());
  ASSERT_TRUE(content);
  EXPECT_EQ(*content, plain);
  for (const std::uint64_t wrong : {std::uint64_t{0}, std::uint64_t{12344}, std::uint64_t{1} << 40, UINT64_MAX}) {
    EXPECT_FALSE(test::open_frame(path.string(), wrong)) << wrong;
  }
}

TEST(Open, ErrorsOfAFrameAtAnOffsetHaveOffsetsInTheFile) {
  const TempDir temp;
  FrameBuilder builder = test::plain_frame(Bytes(1000), 100);
  builder.chunk_section[132 * 3] = 0;                                      // version byte …
  codec::store_le(&builder.chunk_section[132 * 3 + 4], std::int32_t{-1});  // … and length of chunk 3
  Bytes bytes(500);
  const Bytes frame = builder.build();
  bytes.insert(bytes.end(), frame.begin(), frame.end());
  const auto opened = test::open_frame(temp.write("archive", bytes).string(), 500);
  ASSERT_TRUE(opened);
  const auto chunk = test::read_chunk(**opened, 3);
  ASSERT_FALSE(chunk);
  EXPECT_EQ(chunk.error().chunk, 3);
  EXPECT_EQ(chunk.error().file_offset, 500U + 97 + 132 * 3);
}

TEST(Open, NeitherPipesNorDevicesHangOrOpen) {
  const TempDir temp;
  ASSERT_EQ(::mkfifo((temp.path() / "pipe").c_str(), 0600), 0);
  EXPECT_FALSE(test::open_frame((temp.path() / "pipe").string()));
  EXPECT_FALSE(test::open_frame(std::string("/dev/null")));
  EXPECT_EQ(test::open_frame((temp.path() / "absent").string()).error().sys, ENOENT);
}

/// Replaces the content of the file before read number `after`, as a concurrent writer would.
class WriterBehindUs : public test::ForwardingFiles {
 public:
  WriterBehindUs(std::filesystem::path path, Bytes finished, int after)
      : path_(std::move(path)), finished_(std::move(finished)), after_(after) {}

  codec::Result<std::size_t> pread(frame::OpenFile file, codec::ByteSpan into, FileOffset at) override {
    if (reads_++ == after_) {
      std::ofstream out(path_, std::ios::binary | std::ios::in);
      for (const std::uint8_t byte : finished_)
        out.put(static_cast<char>(byte));
    }
    return ForwardingFiles::pread(file, into, at);
  }

 private:
  const std::filesystem::path path_;
  const Bytes finished_;
  const int after_;
  int reads_ = 0;
};

class GrowingFrame : public ::testing::TestWithParam<bool> {};

TEST_P(GrowingFrame, IsReadBeforeOrAfterTheChange) {
  const Bytes before = test::plain_frame(Bytes(3000, 1), 100).build();
  const Bytes after = test::plain_frame(Bytes(5000, 2), 100).build();
  for (int step = 0; step < 8; ++step) {
    const TempDir temp;
    const auto path = temp.write("growing.b2frame", before);
    if (GetParam()) make_old(path);
    WriterBehindUs files(path, after, step);
    const auto opened = frame::open_path(files, path.string(), nullptr);
    ASSERT_TRUE(opened) << step << describe(opened.error());
    const auto view = std::make_shared<const frame::FlatView>(*opened);
    if (view->size() == 3000) continue;  // opened before the change
    ASSERT_EQ(view->size(), 5000U) << step;
    const auto content = test::read_range(*view, 0, 5000);
    ASSERT_TRUE(content) << step << describe(content.error());
    EXPECT_EQ(*content, Bytes(5000, 2)) << step;
  }
}

std::string name_of_age(const ::testing::TestParamInfo<bool>& is_old) {
  return is_old.param ? "LongAfterItsLastChange" : "SoonAfterItsLastChange";
}

INSTANTIATE_TEST_SUITE_P(Open, GrowingFrame, ::testing::Bool(), name_of_age);

TEST(Open, RetriesWhileTheIndexIsOverwritten) {
  // The state in the middle of an append by C-Blosc2: the index is overwritten, the header not yet changed.
  const FrameBuilder builder = test::plain_frame(Bytes(3000, 1), 100);
  const Bytes good = builder.build();
  Bytes torn = good;
  std::fill_n(torn.begin() + static_cast<std::ptrdiff_t>(97 + builder.chunk_section.size()), 100, 0);
  const TempDir temp;
  const auto path = temp.write("torn.b2frame", torn);
  WriterBehindUs files(path, good, 10);
  EXPECT_TRUE(frame::open_path(files, path.string(), nullptr));
  // A file that did not change recently is damaged: opening it fails without retries.
  temp.write("torn.b2frame", torn);
  make_old(path);
  FaultyFiles counting;
  EXPECT_FALSE(frame::open_path(counting, path.string(), nullptr));
  EXPECT_LE(counting.reads(), 3);
}

}  // namespace
}  // namespace cframefs
