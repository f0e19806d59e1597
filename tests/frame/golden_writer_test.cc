// Every kind of frame that C-Blosc2 writes can be compacted, and changed if its chunks can be encoded. Everything that
// was not changed stays the same.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <random>

#include <fcntl.h>
#include <gtest/gtest.h>

#include "codec/chunk_encoder.h"
#include "frame/repair/salvage.h"
#include "frame/write/compaction.h"
#include "frame/write/frame_metalayers.h"
#include "frame/write/frame_space.h"
#include "frame/write/frame_writer.h"
#include "tests/support/frame_model.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using frame::ChunkNumber;
using frame::Durability;
using frame::FrameWriter;
using test::FrameModel;

class GoldenWriterTest : public ::testing::Test {
 protected:
  GoldenWriterTest() : files_(frame::system_files()) {
    const auto fd = files_.open_named(temp_.path().string(), O_RDONLY | O_DIRECTORY);
    EXPECT_TRUE(fd);
    dir_ = frame::Descriptor(files_, fd.value_or(frame::OpenFile{}));
  }

  /// Copies each golden frame of at most kMost bytes to the file `frame` and calls `take` with its model.
  void every_frame(const std::function<void(const FrameModel&)>& take) {
    for (const test::Row& row : test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")) {
      if (row["offset"] != "0") continue;
      const auto file = row.file("path");
      const auto opened = test::open_frame(file.string());
      if (!opened || (*opened)->parameters().nbytes > kMost || !std::filesystem::is_regular_file(file)) continue;
      const auto model = test::read_model(**opened);
      if (!model) continue;
      temp_.write("frame", test::file_bytes(file));
      SCOPED_TRACE(file.string());
      take(*model);
      if (HasFatalFailure()) return;
    }
  }

  void check(const FrameModel& model) {
    const auto opened = test::open_frame((temp_.path() / "frame").string());
    ASSERT_TRUE(opened) << codec::describe(opened.error());
    const auto read = test::read_model(**opened);
    ASSERT_TRUE(read) << codec::describe(read.error());
    ASSERT_TRUE(read->plain == model.plain);
    ASSERT_EQ(read->vlmetalayers, model.vlmetalayers);
    ASSERT_EQ(read->metalayers, model.metalayers);
  }

  static constexpr std::uint64_t kMost = std::uint64_t{8} << 20;

  test::TempDir temp_;
  frame::FileOps& files_;
  frame::Descriptor dir_;
};

TEST_F(GoldenWriterTest, EveryFrameIsCompacted) {
  int compacted = 0;
  every_frame([&](const FrameModel& model) {
    frame::WriterOptions options{.fresh = true, .stores_chunks = false};
    options.checksums = frame::Checksums::off;
    const auto writer = FrameWriter::open(files_, dir_.handle(), "frame", nullptr, options);
    if (!writer) {
      EXPECT_EQ(writer.error().kind, ErrorKind::unsupported) << codec::describe(writer.error());
      return;
    }
    const std::uint64_t before = (*writer)->parameters().frame_length;
    const auto done = frame::FrameSpace(**writer).compact();
    ASSERT_TRUE(done) << codec::describe(done.error());
    EXPECT_LE((*writer)->parameters().frame_length, before + 64);
    check(model);
    // The digests of a frame take 1/128 of its chunks at most, and a few bytes for each chunk.
    const auto plain_length = (*writer)->parameters().frame_length;
    const auto sealing = FrameWriter::open(files_, dir_.handle(), "frame", nullptr, {.stores_chunks = false});
    ASSERT_TRUE(sealing);
    ASSERT_TRUE(frame::FrameSpace(**sealing).compact());
    const auto chunks = static_cast<std::uint64_t>((*sealing)->container()->chunk_count());
    EXPECT_LE((*sealing)->parameters().frame_length, plain_length + plain_length / 128 + 20 * chunks + 256);
    check(model);
    ++compacted;
  });
  EXPECT_GT(compacted, 300);
}

/// CFRAMEFS_FLIPS in the environment: bits to flip in each frame, in place of kFlips.
std::size_t flips_of_each_frame() {
  constexpr std::size_t kFlips = 40;
  const char* const wanted = std::getenv("CFRAMEFS_FLIPS");
  return wanted != nullptr ? static_cast<std::size_t>(std::strtoul(wanted, nullptr, 10)) : kFlips;
}

TEST_F(GoldenWriterTest, AFlippedBitInASealedChunkIsAnErrorOrTheRightBytes) {
  const std::size_t flips = flips_of_each_frame();
  int sealed = 0;
  std::size_t errors = 0;
  std::mt19937_64 random(11);
  every_frame([&](const FrameModel&) {
    const auto writer = FrameWriter::open(files_, dir_.handle(), "frame", nullptr, {.stores_chunks = false});
    if (!writer || !frame::FrameSpace(**writer).compact()) return;
    const auto frame = (*writer)->container();
    if (!frame->as_frame()->seal()) return;
    ++sealed;
    std::vector<std::uint8_t> bytes = test::file_bytes(temp_.path() / "frame");
    struct Stored {
      std::int64_t chunk;
      std::uint64_t begin;
      std::uint64_t length;
    };
    std::vector<Stored> chunks;
    std::uint64_t total = 0;
    for (std::int64_t chunk = 0; chunk < frame->chunk_count(); ++chunk) {
      const auto location = frame->locate_chunk(ChunkNumber{chunk});
      ASSERT_TRUE(location);
      if (location->special != codec::SpecialValue::none) continue;
      chunks.push_back({chunk, location->offset.value, frame::stored_length(*location).value()});
      total += chunks.back().length;
    }
    if (chunks.empty()) return;
    // All bytes of a small frame, otherwise random ones.
    const bool takes_all = total <= flips;
    for (std::size_t flip = 0; flip < std::min<std::uint64_t>(flips, total); ++flip) {
      std::uint64_t at = takes_all ? flip : random() % total;
      auto hit = chunks.begin();
      for (; at >= hit->length; ++hit)
        at -= hit->length;
      std::uint8_t& byte = bytes[hit->begin + at];
      const auto bit = static_cast<std::uint8_t>(1U << (random() % 8));
      const auto right = test::read_chunk(*frame, hit->chunk);
      byte ^= bit;
      const auto damaged = test::open_frame(bytes);
      ASSERT_TRUE(damaged) << codec::describe(damaged.error());
      const auto got = test::read_chunk(**damaged, hit->chunk);
      byte ^= bit;
      if (!got) {
        ++errors;
        // A codec without a decoder here is unsupported before and after.
        EXPECT_EQ(got.error().kind, right ? ErrorKind::corruption : got.error().kind);
        continue;
      }
      ASSERT_TRUE(right && *got == *right) << "chunk " << hit->chunk << ", byte " << at;
    }
  });
  EXPECT_GT(sealed, 300);
  EXPECT_GT(errors, 5000U);
}

TEST_F(GoldenWriterTest, EveryFrameThatCanBeEncodedIsChanged) {
  int changed = 0;
  codec::EncodeContext context;
  every_frame([&](const FrameModel& before) {
    const auto opened = FrameWriter::open(files_, dir_.handle(), "frame", nullptr, {.fresh = true});
    if (!opened) {
      EXPECT_EQ(opened.error().kind, ErrorKind::unsupported) << codec::describe(opened.error());
      return;
    }
    FrameWriter& writer = **opened;
    FrameModel model = before;
    const std::int32_t given = writer.pending().chunksize();
    const auto size = static_cast<std::size_t>(given > 0 ? given : writer.parameters().typesize * 100);
    const auto parameters = frame::encode_parameters(writer.parameters());
    const auto store = [&](std::size_t chunk) {
      const std::size_t begin = chunk * size;
      const auto piece = codec::ByteView(model.plain).subspan(begin, std::min(size, model.plain.size() - begin));
      auto encoded = codec::encode_chunk(context, parameters, piece);
      ASSERT_TRUE(encoded) << codec::describe(encoded.error());
      ASSERT_TRUE(writer.store(ChunkNumber{static_cast<std::int64_t>(chunk)}, std::move(*encoded)));
    };
    // Replaces the first chunk, fills up the last one, and appends one.
    const std::size_t old_size = model.plain.size();
    model.plain.resize((old_size + size - 1) / size * size + size, 0x5a);
    const auto first = test::pattern(std::min(size, model.plain.size()), 3);
    std::copy(first.begin(), first.end(), model.plain.begin());
    for (std::size_t chunk = 0; chunk < model.plain.size() / size; ++chunk) {
      if (chunk == 0 || (chunk + 1) * size > old_size) store(chunk);
    }
    model.vlmetalayers["ours"] = {1, 2, 3};
    const bool room = before.vlmetalayers.size() < frame::layout::kMaxMetalayers;
    const auto set = frame::FrameMetalayers(writer).set_variable("ours", model.vlmetalayers["ours"]);
    ASSERT_EQ(set.has_value(), room);
    if (!room) model.vlmetalayers.erase("ours");
    const auto done = writer.commit(Durability::ordered);
    ASSERT_TRUE(done) << codec::describe(done.error());
    check(model);
    ++changed;
  });
  EXPECT_GT(changed, 200);
}

/// open_damaged() salvages or refuses frames with random damage. All chunks of a salvaged frame can be visited.
TEST_F(GoldenWriterTest, DamagedFramesAreSalvagedOrRefused) {
  int salvaged = 0;
  unsigned seed = 0;
  every_frame([&](const FrameModel& model) {
    const auto bytes = test::file_bytes(temp_.path() / "frame");
    if (bytes.size() > 100'000 || model.plain.empty()) return;
    for (int round = 0; round < 3; ++round) {
      auto damaged = bytes;
      const auto noise = test::pattern(64, ++seed);
      for (std::size_t i = 0; i < noise.size(); i += 2)
        damaged[(noise[i] * 256U + noise[i + 1]) * bytes.size() / 65536] ^= static_cast<std::uint8_t>(noise[i] | 1U);
      if (round == 2) damaged.resize(damaged.size() * noise[0] / 256);
      const auto salvage =
          frame::open_damaged(frame::memory_source(std::move(damaged)), std::make_shared<frame::IndexCache>());
      if (!salvage) continue;
      ++salvaged;
      const auto count = std::min<std::int64_t>(salvage->container->chunk_count(), 1000);
      for (std::int64_t chunk = 0; chunk < count; ++chunk) {
        const auto location = salvage->container->locate_chunk(ChunkNumber{chunk});
        if (location && location->nbytes < 1 << 24) static_cast<void>(test::read_chunk(*salvage->container, chunk));
      }
    }
  });
  EXPECT_GT(salvaged, 100);
}

}  // namespace
}  // namespace cframefs
