// Dead bytes of a frame: what a new writer measures, how large a frame gets over many sessions, and how much memory a
// run of zeros takes.
#include "frame/write/dead_space.h"

#include <algorithm>
#include <cerrno>
#include <filesystem>
#include <map>
#include <random>
#include <utility>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "codec/chunk_encoder.h"
#include "frame/write/compaction.h"
#include "frame/write/frame_space.h"
#include "frame/write/frame_writer.h"
#include "tests/support/forwarding_files.h"
#include "tests/support/frame_builder.h"
#include "tests/support/memory_meter.h"
#include "tests/support/reading.h"
#include "tests/support/sanitizers.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using frame::ChunkNumber;
using frame::Durability;
using frame::FrameWriter;
using test::Bytes;

constexpr std::int32_t kSmallChunk = 400;
constexpr unsigned kChunks = 1000;

class DeadSpaceTest : public ::testing::Test {
 protected:
  DeadSpaceTest() {
    const auto fd = files_.open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(files_, fd.value_or(frame::OpenFile{}));
  }
  std::unique_ptr<FrameWriter> open() {
    auto writer = FrameWriter::open(files_, dir_.handle(), kName, nullptr, {.fresh = true});
    EXPECT_TRUE(writer) << (writer ? "" : codec::describe(writer.error()));
    return writer ? std::move(*writer) : nullptr;
  }
  /// Makes a frame of `count` chunks.
  void make(std::int64_t count) {
    frame::NewFrame made;
    made.chunksize = kSmallChunk;
    temp_.write(kName, frame::empty_frame(made));
    const auto writer = open();
    for (std::int64_t i = 0; i < count; ++i)
      expect_ok(writer->store(ChunkNumber{i}, chunk(static_cast<unsigned>(i))));
    expect_ok(writer->commit(Durability::ordered));
  }
  /// Returns one of kChunks chunks; its stored length depends on `seed`. Each is encoded once.
  static const codec::EncodedChunk& chunk(unsigned seed) {
    static std::map<unsigned, codec::EncodedChunk> encoded;
    const auto [found, is_new] = encoded.try_emplace(seed % kChunks);
    if (is_new) {
      codec::EncodeContext context;
      auto made = codec::encode_chunk(context, codec::EncodeParameters(), plain(seed % kChunks));
      EXPECT_TRUE(made);
      if (made) found->second = std::move(*made);
    }
    return found->second;
  }
  static Bytes plain(unsigned seed) {
    std::mt19937 random(seed);
    Bytes bytes(kSmallChunk);
    std::generate_n(bytes.begin(), 40 + seed % 5 * 90, [&random] { return static_cast<std::uint8_t>(random()); });
    return bytes;
  }
  std::uint64_t file_size() const { return std::filesystem::file_size(temp_.path() / kName); }
  std::uint64_t packed_size() {
    temp_.write("packed.b2frame", test::file_bytes((temp_.path() / kName).string()));
    expect_ok(frame::compact(files_, dir_.handle(), "packed.b2frame", nullptr));
    return std::filesystem::file_size(temp_.path() / "packed.b2frame");
  }
  static void expect_ok(const codec::Result<void>& result) { EXPECT_TRUE(result) << codec::describe(result.error()); }

  static constexpr const char* kName = "frame.b2frame";
  test::TempDir temp_;
  test::ForwardingFiles files_;
  frame::Descriptor dir_;
};

/// A session measures the dead bytes of earlier sessions, for frames of few and of many chunks.
TEST_F(DeadSpaceTest, AFrameStaysBoundedOverManySessions) {
  for (const std::int64_t count : {300, test::steps(70'000)}) {
    make(count);
    const std::uint64_t packed = packed_size();
    std::mt19937 random(1);
    std::uint64_t largest = 0;
    const std::int64_t at_once = count / 20;
    for (int session = 0; session < 50; ++session) {
      const auto writer = open();
      for (std::int64_t i = 0; i < at_once; ++i) {
        const auto number = static_cast<std::int64_t>(random() % static_cast<unsigned>(count));
        expect_ok(writer->store(ChunkNumber{number}, chunk(random())));
      }
      expect_ok(writer->commit(Durability::ordered));
      largest = std::max(largest, file_size());
    }
    // Without compaction the file would become more than three times as long.
    EXPECT_LT(largest, packed * 23 / 10 + (32 << 10)) << count;
    EXPECT_GT(largest, packed * 17 / 10) << count << ": the file is rewritten too often";
  }
}

TEST_F(DeadSpaceTest, DeadBytesAreMeasuredWithinEightPercent) {
  for (const std::int64_t count : {100, 257, 3000}) {
    for (const int part : {0, 10, 50, 90}) {
      make(count);
      std::mt19937 random(static_cast<unsigned>(part));
      {
        const auto writer = open();
        for (std::int64_t i = 0; i < count; ++i) {
          if (static_cast<int>(random() % 100) < part) expect_ok(writer->store(ChunkNumber{i}, chunk(random())));
        }
        expect_ok(writer->commit(Durability::ordered));
      }
      const auto writer = open();
      std::uint64_t dead = writer->parameters().cbytes;
      for (std::int64_t i = 0; i < count; ++i)
        dead -= frame::stored_length(*writer->container()->locate_chunk(ChunkNumber{i})).value();
      if (const auto seal = writer->container()->as_frame()->seal()) {
        const auto ranges = seal->ranges();
        ASSERT_TRUE(ranges);
        for (const codec::ByteRange& range : *ranges)
          dead -= range.size();
      }
      const auto found = frame::measure_dead_bytes(*writer->container()->as_frame());
      ASSERT_TRUE(found);
      const auto section = static_cast<double>(writer->parameters().cbytes);
      EXPECT_NEAR(static_cast<double>(*found), static_cast<double>(dead), count > 256 ? section * 0.08 : 0)
          << count << " chunks, " << part << " of 100 replaced";
    }
  }
}

TEST_F(DeadSpaceTest, AFrameOfHolesHasOnlyDeadBytes) {
  make(500);
  {
    const auto writer = open();
    writer->store_zeros(ChunkNumber{0}, ChunkNumber{500});
    expect_ok(writer->commit(Durability::ordered));
  }
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{7}, chunk(7)));
  expect_ok(writer->commit(Durability::ordered));
  EXPECT_LT(file_size(), 5000U);
}

/// Fails to create files while `may_make` is false.
class SwitchableFiles : public test::ForwardingFiles {
 public:
  codec::Result<frame::OpenFile> create_at(frame::OpenFile dir, const std::string& path, int flags,
                                           mode_t mode) override {
    ++attempts;
    return may_make ? ForwardingFiles::create_at(dir, path, flags, mode) : codec::io_error(ENOSPC, "create");
  }
  bool may_make = false;
  int attempts = 0;
};

TEST_F(DeadSpaceTest, AFailedCompactionIsRetriedButNotAtEveryCommit) {
  make(300);
  const std::uint64_t packed = packed_size();
  SwitchableFiles files;
  const auto writer = FrameWriter::open(files, dir_.handle(), kName, nullptr, {.fresh = true});
  ASSERT_TRUE(writer);
  const auto replace = [&](unsigned seed) {
    for (std::int64_t i = 0; i < 30; ++i)
      expect_ok((*writer)->store(ChunkNumber{(seed * 30 + i) % 300}, chunk(seed)));
    expect_ok((*writer)->commit(Durability::ordered));
  };
  for (unsigned i = 0; i < 60; ++i)
    replace(i);
  EXPECT_GT(files.attempts, 1);
  EXPECT_LT(files.attempts, 8);
  EXPECT_GT(file_size(), 5 * packed);
  files.may_make = true;
  for (unsigned i = 0; i < 60; ++i)
    replace(i);
  EXPECT_LT(file_size(), 3 * packed);
}

/// A frame of 2^26 chunks (2^24 with a sanitizer) with data at both ends. The chunks in between are replaced by zeros
/// several times.
TEST_F(DeadSpaceTest, TheMemoryOfARunOfZerosDoesNotDependOnItsLength) {
  constexpr std::int64_t kMany = test::steps(std::int64_t{1} << 26) - 8;
  frame::NewFrame made;
  made.chunksize = kSmallChunk;
  temp_.write(kName, frame::empty_frame(made));
  const auto writer = open();
  expect_ok(writer->store(ChunkNumber{0}, chunk(1)));
  expect_ok(writer->resize(kMany * kSmallChunk));
  expect_ok(writer->store(ChunkNumber{kMany - 1}, chunk(2)));
  expect_ok(writer->commit(Durability::ordered));
  std::size_t before = 0;
  for (unsigned i = 0; i < 2; ++i) {
    before = test::reset_peak();
    writer->store_zeros(ChunkNumber{1}, ChunkNumber{kMany - 1});
    expect_ok(writer->store(ChunkNumber{kMany / 2}, chunk(i)));
    EXPECT_LT(test::peak_bytes() - before, std::size_t{1} << 20);
    expect_ok(writer->commit(Durability::ordered));
  }
  writer->store_zeros(ChunkNumber{1}, ChunkNumber{kMany - 1});
  expect_ok(writer->commit(Durability::ordered));
  expect_ok(frame::FrameSpace(*writer).compact());
  EXPECT_LT(test::peak_bytes() - before, std::size_t{96} << 20);
  EXPECT_EQ(test::read_chunk(*writer->container(), kMany - 1).value(), plain(2));
  EXPECT_EQ(test::read_chunk(*writer->container(), kMany / 2).value(), Bytes(kSmallChunk));
  const auto next = writer->container()->next_chunk(ChunkNumber{1}, false);
  ASSERT_TRUE(next);
  EXPECT_EQ(next->value, kMany - 1);
}

}  // namespace
}  // namespace cframefs
