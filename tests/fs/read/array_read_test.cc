// Reads arrays through ReadPath: the bytes equal those of a naive model, and no block is decoded needlessly or twice.
#include <algorithm>

#include <gtest/gtest.h>
#include <rapidcheck.h>
#include <rapidcheck/gtest.h>

#include "frame/array/array_view.h"
#include "fs/read/read_path.h"
#include "tests/support/array_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

using test::ArrayChunk;
using test::ArraySpec;
using test::Bytes;

constexpr std::uint64_t kMib = std::uint64_t{1} << 20;

/// A ReadPath with its dependencies, and one array to read.
struct Reader {
  Reader(const test::FrameBuilder& frame, frame::ArrayForm form, std::uint64_t bound)
      : read_path(bound, statistics, once, 2) {
    auto container = test::open_frame(frame.build());
    EXPECT_TRUE(container) << describe(container.error());
    auto view = frame::make_view(std::move(*container), form, true);
    EXPECT_TRUE(view) << describe(view.error());
    snapshot = std::make_shared<const FrameSnapshot>(1, frame::FileVersion{}, std::move(*view), "array.b2nd",
                                                     read_path.cache());
  }

  codec::Result<Bytes> read(std::uint64_t at, std::uint64_t length,
                            ReadPath::AccessPattern pattern = ReadPath::AccessPattern::any) {
    Reply reply;
    if (auto done = read_path.read(*snapshot, frame::FlatOffset{at}, length, reply, pattern); !done) {
      return codec::Failure(done.error());
    }
    Bytes bytes(reply.size());
    reply.copy_to(bytes.data());
    return bytes;
  }
  std::uint64_t blocks_decoded() const { return statistics.blocks_decoded.load(); }

  DecodingStatistics statistics;
  DedupLogger once;
  ReadPath read_path;
  std::shared_ptr<const FrameSnapshot> snapshot;
};

RC_GTEST_PROP(Gather, AnyRangeEqualsTheModel, ()) {
  ArraySpec spec;
  const int ndim = *rc::gen::inRange(0, 5);
  for (int d = 0; d < ndim; ++d) {
    spec.shape.push_back(*rc::gen::inRange(1, 12));
    spec.chunkshape.push_back(*rc::gen::inRange(1, 14));
    spec.blockshape.push_back(*rc::gen::inRange(1, spec.chunkshape.back() + 1));
  }
  spec.typesize = *rc::gen::element(1, 2, 4, 7, 8, 24);
  spec.dtype = "|V" + std::to_string(spec.typesize);
  if (spec.chunk_bytes() > (1 << 20)) RC_DISCARD("chunks too large for a test");
  const Bytes items = test::varied_items(spec.nbytes());
  const auto frame = test::array_frame(spec, items, [](std::int64_t) {
    return *rc::gen::element(ArrayChunk::blocks, ArrayChunk::blocks, ArrayChunk::plain);
  });
  const auto form = *rc::gen::element(frame::ArrayForm::npy, frame::ArrayForm::flat);
  // The bound ranges from a cache that holds everything to one that holds some rows of the blocks, or nothing.
  const auto bound = *rc::gen::elementOf(std::vector<std::uint64_t>{kMib, 100000, 20000, 5000, 1});
  Reader reader(frame, form, bound);
  const codec::ByteView head = reader.snapshot->view().head();
  Bytes expected(head.begin(), head.end());
  expected.insert(expected.end(), items.begin(), items.end());
  for (int i = 0; i < 4; ++i) {
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, expected.size());
    const auto length = *rc::gen::inRange<std::uint64_t>(1, expected.size() + 10);
    const auto bytes = reader.read(begin, length,
                                   *rc::gen::element(ReadPath::AccessPattern::any, ReadPath::AccessPattern::sequential,
                                                     ReadPath::AccessPattern::random));
    if (!bytes) RC_FAIL(describe(bytes.error()));
    RC_ASSERT(bytes->size() == std::min<std::uint64_t>(length, expected.size() - begin));
    RC_ASSERT(std::equal(bytes->begin(), bytes->end(), expected.begin() + static_cast<std::ptrdiff_t>(begin)));
  }
}

/// 4 x 3 x 2 chunks of 2 x 2 x 2 blocks, with padding at every edge; 64 KiB in a block.
const ArraySpec kTiled = {{120, 90, 100}, {32, 32, 64}, {16, 16, 32}, 8, "<f8"};

std::uint64_t blocks_with_items(const ArraySpec& spec) {
  std::uint64_t blocks = 1;
  for (std::size_t d = 0; d < spec.shape.size(); ++d) {
    std::uint64_t along = 0;
    for (std::int64_t chunk = 0; chunk < spec.shape[d]; chunk += spec.chunkshape[d]) {
      const std::int64_t items = std::min<std::int64_t>(spec.chunkshape[d], spec.shape[d] - chunk);
      along += static_cast<std::uint64_t>((items + spec.blockshape[d] - 1) / spec.blockshape[d]);
    }
    blocks *= along;
  }
  return blocks;
}

TEST(Gather, ASequentialReaderDecodesEachBlockOnceAndLeavesNothingBehind) {
  const Bytes items = test::varied_items(kTiled.nbytes());
  Reader reader(test::array_frame(kTiled, items), frame::ArrayForm::flat, 64 * kMib);
  constexpr std::uint64_t kStep = 10000;  // no multiple of anything
  for (std::uint64_t at = 0; at < items.size(); at += kStep) {
    const auto bytes = reader.read(at, kStep);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    ASSERT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + static_cast<std::ptrdiff_t>(at))) << at;
  }
  EXPECT_EQ(reader.blocks_decoded(), blocks_with_items(kTiled));
  // All bytes were served, padding counted: a few MiB stay for a reader close behind.
  EXPECT_LE(reader.read_path.cache().bytes(), 5 * kMib);
}

// semantics: B8
TEST(Gather, ASlabLargerThanTheCacheIsCachedInBandsOfRows) {
  const Bytes items = test::varied_items(kTiled.nbytes());
  // A slab has 24 blocks of 16 rows of 4 KiB. Two bands of four rows of each are 768 KiB.
  Reader reader(test::array_frame(kTiled, items), frame::ArrayForm::flat, kMib);
  constexpr std::uint64_t kStep = 10000;
  for (std::uint64_t at = 0; at < items.size(); at += kStep) {
    const auto bytes = reader.read(at, kStep, ReadPath::AccessPattern::sequential);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    ASSERT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + static_cast<std::ptrdiff_t>(at))) << at;
  }
  // The last of the eight slabs has eight rows.
  EXPECT_EQ(reader.blocks_decoded(), (7 * 4 + 2) * 24U);
  EXPECT_LE(reader.read_path.cache().bytes(), kMib);
}

TEST(Gather, ARandomReaderBypassesTheCacheUntilItReturnsOften) {
  // Blocks of 128 rows; a row touches ten.
  const ArraySpec spec = {{640, 1000}, {128, 1000}, {128, 100}, 8, "<f8"};
  constexpr std::uint64_t kRow = 8000;
  const Bytes items = test::varied_items(spec.nbytes());
  Reader reader(test::array_frame(spec, items), frame::ArrayForm::flat, 64 * kMib);
  for (std::uint64_t round = 1; round <= 5; ++round) {
    const std::uint64_t row = 512 + round * 37 % 128;  // not at the beginning of the array
    const auto bytes = reader.read(row * kRow, kRow, ReadPath::AccessPattern::random);
    ASSERT_TRUE(bytes) << describe(bytes.error());
    ASSERT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + static_cast<std::ptrdiff_t>(row * kRow)));
    EXPECT_EQ(reader.blocks_decoded(), 10 * std::min<std::uint64_t>(round, 4)) << round;
    EXPECT_EQ(reader.read_path.cache().bytes() != 0, round >= 4) << round;
  }
}

TEST(Gather, AReaderOfTheBeginningDecodesEachBlockOnce) {
  const ArraySpec spec = {{256, 1000}, {128, 1000}, {128, 100}, 8, "<f8"};
  const Bytes items = test::varied_items(spec.nbytes());
  Reader reader(test::array_frame(spec, items), frame::ArrayForm::npy, 64 * kMib);
  // The second of two requests that the kernel makes at once is served first.
  const std::uint64_t second = reader.snapshot->view().head().size() + 8000;
  ASSERT_TRUE(reader.read(second, 8000, ReadPath::AccessPattern::random));
  ASSERT_TRUE(reader.read(0, second, ReadPath::AccessPattern::random));
  ASSERT_TRUE(reader.read(second + 8000, items.size(), ReadPath::AccessPattern::sequential));
  EXPECT_EQ(reader.blocks_decoded(), blocks_with_items(spec));
}

TEST(Gather, ARowReadInWholePagesDecodesEachBlockOnce) {
  // The pages contain bytes of the rows before and after, which are in blocks of the row, too.
  const ArraySpec spec = {{640, 1000}, {128, 500}, {128, 100}, 8, "<f8"};
  constexpr std::uint64_t kRow = 8000;
  const Bytes items = test::varied_items(spec.nbytes());
  Reader reader(test::array_frame(spec, items), frame::ArrayForm::flat, 64 * kMib);
  const std::uint64_t begin = 562 * kRow - 100;
  const auto bytes = reader.read(begin, kRow + 200, ReadPath::AccessPattern::random);
  ASSERT_TRUE(bytes) << describe(bytes.error());
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + static_cast<std::ptrdiff_t>(begin)));
  EXPECT_EQ(reader.blocks_decoded(), 10U);
}

TEST(Gather, ADamagedBlockFailsOnlyTheBypassesThatTouchIt) {
  const ArraySpec spec = {{1024, 400}, {128, 400}, {128, 100}, 8, "<f8"};
  constexpr std::uint64_t kRow = 3200;
  const Bytes items = test::varied_items(spec.nbytes());
  test::FrameBuilder frame = test::array_frame(spec, items);
  const std::size_t chunk = frame.chunk_section.size() / 8 * 7;
  // The second block of the last chunk contains a stream length larger than any chunk.
  const auto begin = codec::load_le<std::int32_t>(&frame.chunk_section[chunk + 32 + 4]);
  codec::store_le<std::int32_t>(&frame.chunk_section[chunk + static_cast<std::size_t>(begin)], 0x7fffffff);
  Reader reader(frame, frame::ArrayForm::flat, 64 * kMib);
  EXPECT_FALSE(reader.read(1000 * kRow, kRow, ReadPath::AccessPattern::random));
  EXPECT_FALSE(reader.read(1000 * kRow + 800, 800, ReadPath::AccessPattern::random));
  const auto beside = reader.read(1000 * kRow, 800, ReadPath::AccessPattern::random);
  ASSERT_TRUE(beside) << describe(beside.error());
  EXPECT_TRUE(std::equal(beside->begin(), beside->end(), items.begin() + static_cast<std::ptrdiff_t>(1000 * kRow)));
}

TEST(Gather, DecodingAheadTakesTheBandsOfTheRange) {
  const Bytes items = test::varied_items(kTiled.nbytes());
  Reader reader(test::array_frame(kTiled, items), frame::ArrayForm::flat, kMib);
  const std::uint64_t row = std::uint64_t{90} * 100 * 8;
  reader.read_path.decode_ahead(*reader.snapshot, frame::FlatOffset{0}, 4 * row, [] { return true; });
  EXPECT_EQ(reader.blocks_decoded(), 24U);
  const auto bytes = reader.read(0, 4 * row, ReadPath::AccessPattern::sequential);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin()));
  EXPECT_EQ(reader.blocks_decoded(), 24U);
  ASSERT_TRUE(reader.read(4 * row, 1, ReadPath::AccessPattern::sequential));
  EXPECT_EQ(reader.blocks_decoded(), 25U);
}

TEST(Gather, ARandomReaderGetsWholeBlocks) {
  const Bytes items = test::varied_items(kTiled.nbytes());
  Reader reader(test::array_frame(kTiled, items), frame::ArrayForm::flat, kMib);
  const std::uint64_t row = std::uint64_t{90} * 100 * 8;
  // A column: one item of each row of a slab, all in one block.
  for (std::uint64_t i = 0; i < 16; ++i)
    ASSERT_TRUE(reader.read(i * row, 8));
  EXPECT_EQ(reader.blocks_decoded(), 1U);
}

TEST(Gather, DecodingAheadTakesTheBlocksOfTheRangeAndNoOthers) {
  const Bytes items = test::varied_items(kTiled.nbytes());
  Reader reader(test::array_frame(kTiled, items), frame::ArrayForm::npy, 64 * kMib);
  const std::uint64_t slab = std::uint64_t{16} * 90 * 100 * 8;
  const auto always = [] { return true; };
  reader.read_path.decode_ahead(*reader.snapshot, frame::FlatOffset{0}, 100 + slab, always);
  const std::uint64_t of_a_slab = 6 * 4;
  EXPECT_EQ(reader.blocks_decoded(), of_a_slab);
  const std::uint64_t head = reader.snapshot->view().head().size();
  const auto bytes = reader.read(head, slab);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin()));
  EXPECT_EQ(reader.blocks_decoded(), of_a_slab);
  // Cancelled.
  reader.read_path.decode_ahead(*reader.snapshot, frame::FlatOffset{0}, head + items.size(), [] { return false; });
  EXPECT_EQ(reader.blocks_decoded(), of_a_slab);
}

TEST(Gather, ARowDecodesOnlyTheBlocksThatHoldIt) {
  // Small blocks, several of which share a cell: neighbours along the row.
  const ArraySpec spec{{400, 1000}, {100, 300}, {10, 10}, 8, "<f8"};
  const Bytes items = test::varied_items(spec.nbytes());
  Reader reader(test::array_frame(spec, items), frame::ArrayForm::flat, 64 * kMib);
  const std::uint64_t row = 8000;
  const auto bytes = reader.read(157 * row, row);
  ASSERT_TRUE(bytes);
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + 157 * static_cast<std::ptrdiff_t>(row)));
  // In the last chunk, blocks of padding that share a cell with the row's end may be decoded as well.
  EXPECT_GE(reader.blocks_decoded(), 100U);
  EXPECT_LE(reader.blocks_decoded(), 120U);
  const std::uint64_t before = reader.blocks_decoded();
  ASSERT_TRUE(reader.read(158 * row, row));
  EXPECT_EQ(reader.blocks_decoded(), before) << "the next row lies in the same blocks";
}

TEST(Gather, ADamagedChunkFailsTheReadsThatTouchItAndNoOthers) {
  const ArraySpec spec{{8, 6}, {4, 3}, {2, 3}, 4, "<i4"};
  const Bytes items = test::varied_items(spec.nbytes());
  test::FrameBuilder frame = test::array_frame(spec, items);
  const std::size_t chunk = frame.chunk_section.size() / 4;
  // The second chunk of four, where its blocks begin: columns 3 to 5 of the first four rows.
  for (std::size_t i = 0; i < 8; ++i)
    frame.chunk_section[chunk + 32 + i] = 0xff;
  Reader reader(frame, frame::ArrayForm::flat, kMib);
  for (std::uint64_t row = 0; row < 8; ++row) {
    const auto left = reader.read(row * 24, 12);
    ASSERT_TRUE(left) << row;
    EXPECT_TRUE(std::equal(left->begin(), left->end(), items.begin() + static_cast<std::ptrdiff_t>(row * 24)));
    const auto right = reader.read(row * 24 + 12, 12);
    if (row < 4) {
      ASSERT_FALSE(right) << row;
      EXPECT_EQ(right.error().kind, codec::ErrorKind::corruption);
      EXPECT_EQ(right.error().path, "array.b2nd");
      EXPECT_EQ(right.error().chunk, 1);
    } else {
      ASSERT_TRUE(right) << row;
      EXPECT_TRUE(std::equal(right->begin(), right->end(), items.begin() + static_cast<std::ptrdiff_t>(row * 24 + 12)));
    }
  }
}

TEST(Gather, AChunkOfAnotherLengthIsRejected) {
  const ArraySpec spec{{8, 6}, {4, 3}, {2, 3}, 4, "<i4"};
  const Bytes items = test::varied_items(spec.nbytes());
  // The lengths of the chunks add up, but they are not those of the array's chunks.
  test::FrameBuilder frame = test::array_frame(spec, items);
  frame.chunksize = 0;
  frame.general_flags |= 0x40;
  frame.chunk_section.clear();
  std::vector<std::int64_t> entries;
  for (const std::size_t length : {48U, 40U, 56U, 48U}) {
    entries.push_back(static_cast<std::int64_t>(frame.chunk_section.size()));
    const Bytes chunk = test::plain_chunk(test::varied_items(length));
    frame.chunk_section.insert(frame.chunk_section.end(), chunk.begin(), chunk.end());
  }
  frame.index = test::plain_index(entries);
  Reader reader(frame, frame::ArrayForm::flat, kMib);
  EXPECT_TRUE(reader.read(0, 12));
  for (const std::uint64_t at : {12, 4 * 24}) {
    const auto bytes = reader.read(at, 12);
    ASSERT_FALSE(bytes);
    EXPECT_EQ(bytes.error().kind, codec::ErrorKind::corruption);
  }
}

TEST(Gather, RepeatedValuesAreReadInAnyBlocks) {
  const ArraySpec spec{{300, 500}, {200, 300}, {70, 90}, 4, "<i4"};
  Bytes items(spec.nbytes());
  for (std::size_t i = 0; i < items.size(); ++i)
    items[i] = static_cast<std::uint8_t>("wxyz"[i % 4]);
  test::FrameBuilder frame = test::array_frame(spec, items);
  const Bytes value = {'w', 'x', 'y', 'z'};
  frame.chunk_section = test::repeated_chunk(value, spec.chunk_bytes(), 4);
  frame.index = test::plain_index({0, 0, 0, 0});
  Reader reader(frame, frame::ArrayForm::flat, kMib);
  const auto bytes = reader.read(1, items.size() - 1);
  ASSERT_TRUE(bytes) << describe(bytes.error());
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), items.begin() + 1));
}

}  // namespace
}  // namespace cframefs::fs
