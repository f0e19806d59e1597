// ChunkReader: any blocks equal those of the whole chunk, and are read with few reads.
#include "frame/container/chunk_reader.h"

#include <algorithm>
#include <atomic>
#include <numeric>
#include <random>
#include <thread>

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "frame/cframe/cframe.h"
#include "frame/cframe/frame_layout.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/reading.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ByteSpan;
using frame::ChunkNumber;
using frame::ChunkReader;
using test::Bytes;
using test::FrameBuilder;

/// A source in memory that counts reads.
class CountingSource final : public frame::ByteSource {
 public:
  explicit CountingSource(Bytes bytes) : bytes_(std::move(bytes)) {}
  std::uint64_t size() const override { return bytes_.size(); }
  codec::Result<void> read(frame::FileOffset at, ByteSpan into) const override {
    ++reads_;
    count_ += into.size();
    if (at.value > bytes_.size() || into.size() > bytes_.size() - at.value) return codec::corrupt("past the end");
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at.value), into.size(), into.begin());
    return {};
  }
  frame::FileOffset base_offset() const override { return frame::FileOffset{1000}; }
  bool is_remote() const override { return remote; }
  void expect(frame::FileOffset at, std::uint64_t length) const override { expected.emplace_back(at.value, length); }
  std::size_t reads() const { return reads_.exchange(0); }
  std::size_t count() const { return count_.exchange(0); }

  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> expected;
  bool remote = false;

 private:
  const Bytes bytes_;
  mutable std::atomic<std::size_t> reads_{0};
  mutable std::atomic<std::size_t> count_{0};
};

Bytes noise(std::size_t length) {
  Bytes bytes(length);
  std::minstd_rand random(static_cast<unsigned>(length));
  for (std::uint8_t& byte : bytes)
    byte = static_cast<std::uint8_t>(random() >> 8);
  return bytes;
}

/// A frame of one chunk.
FrameBuilder frame_of(const Bytes& chunk, std::size_t plain_length) {
  FrameBuilder builder;
  builder.nbytes = static_cast<std::int64_t>(plain_length);
  builder.chunksize = static_cast<std::int32_t>(plain_length);
  builder.chunk_section = chunk;
  builder.index = test::plain_index({0});
  return builder;
}

struct OpenedChunk {
  std::shared_ptr<const CountingSource> source;
  std::shared_ptr<const frame::Container> container;
  std::shared_ptr<const ChunkReader> reader;
};

OpenedChunk open_chunk(const Bytes& chunk, std::size_t plain_length) {
  OpenedChunk opened;
  opened.source = std::make_shared<const CountingSource>(frame_of(chunk, plain_length).build());
  auto container = frame::open_cframe(opened.source, std::make_shared<frame::IndexCache>());
  EXPECT_TRUE(container) << describe(container.error());
  opened.container = *container;
  static_cast<void>(opened.container->locate_chunk(ChunkNumber{0}));  // puts the index into its cache
  static_cast<void>(opened.source->reads());
  static_cast<void>(opened.source->count());
  auto reader = ChunkReader::open(*opened.container, ChunkNumber{0});
  EXPECT_TRUE(reader) << describe(reader.error());
  if (reader) opened.reader = *reader;
  return opened;
}

/// Decodes blocks [first, first + count) into one buffer.
codec::Result<Bytes> decode_blocks(const ChunkReader& reader, std::uint32_t first, std::uint32_t count,
                                   codec::ByteView reference = {}) {
  const codec::ChunkDecoder& decoder = reader.decoder();
  const std::uint64_t begin = decoder.block_range(first).begin;
  Bytes bytes(decoder.block_range(first + count - 1).end - begin);
  std::vector<ByteSpan> outs;
  for (std::uint32_t block = first; block < first + count; ++block) {
    const codec::ByteRange range = decoder.block_range(block);
    outs.push_back(ByteSpan(bytes).subspan(range.begin - begin, range.size()));
  }
  codec::DecodeContext context;
  if (auto done = reader.decode(context, first, outs, reference); !done) return codec::Failure(done.error());
  return bytes;
}

TEST(ChunkReader, ARemoteSourceLearnsHowFarAShortChunkReaches) {
  const Bytes plain = noise(100000);
  const Bytes chunk = test::raw_block_chunk(plain, 1000);
  FrameBuilder builder = frame_of(chunk, plain.size());
  builder.nbytes = static_cast<std::int64_t>(2 * plain.size());
  builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
  builder.index = test::plain_index({0, static_cast<std::int64_t>(chunk.size())});
  for (const bool remote : {false, true}) {
    auto source = std::make_shared<CountingSource>(builder.build());
    source->remote = remote;
    const auto container = frame::open_cframe(source, std::make_shared<frame::IndexCache>());
    ASSERT_TRUE(container) << describe(container.error());
    const std::uint64_t begin = (*container)->locate_chunk(ChunkNumber{0})->offset.value;
    if (remote) source->expected.clear();  // what opening the frame expected
    ASSERT_TRUE(ChunkReader::open(**container, ChunkNumber{0}));
    if (!remote) {
      EXPECT_TRUE(source->expected.empty());
      continue;
    }
    ASSERT_EQ(source->expected.size(), 1U);
    EXPECT_EQ(source->expected.front(), std::pair(begin, std::uint64_t{chunk.size()}));
  }
}

TEST(ChunkReader, OfAChunkOfMoreThanAMebibyteTheBlockStartsAreExpected) {
  const Bytes plain = noise((std::size_t{1} << 20) + 100);
  auto source = std::make_shared<CountingSource>(frame_of(test::raw_block_chunk(plain, 1000), plain.size()).build());
  source->remote = true;
  const auto container = frame::open_cframe(source, std::make_shared<frame::IndexCache>());
  ASSERT_TRUE(container) << describe(container.error());
  const std::uint64_t begin = (*container)->locate_chunk(ChunkNumber{0})->offset.value;
  source->expected.clear();  // what opening the frame expected
  ASSERT_TRUE(ChunkReader::open(**container, ChunkNumber{0}));
  ASSERT_EQ(source->expected.size(), 1U);
  const auto [at, length] = source->expected.front();
  EXPECT_EQ(at, begin);
  EXPECT_GE(length, 32U + 4U * 1049U);  // one for each block
  EXPECT_LE(length, 64U << 10U);
}

TEST(ChunkReader, OpeningTakesOneShortRead) {
  const Bytes plain = noise(100000);
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 1000), plain.size());
  EXPECT_EQ(opened.source->reads(), 1U);
  EXPECT_LE(opened.source->count(), 4096U);
}

TEST(ChunkReader, ManyBlockStartsTakeASecondRead) {
  const Bytes plain = noise(10000);
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 10), plain.size());
  EXPECT_EQ(opened.source->reads(), 2U);
}

TEST(ChunkReader, AnyBlocksAreThoseOfTheWholeInAnyStoredOrder) {
  EXPECT_TRUE(rc::check("blocks", [] {
    const Bytes plain = noise(*rc::gen::inRange<std::size_t>(32, 20000));
    const auto blocksize = *rc::gen::inRange<std::uint32_t>(8, 3000);
    const auto count = static_cast<std::uint32_t>((plain.size() + blocksize - 1) / blocksize);
    std::vector<std::uint32_t> order(count);
    std::iota(order.begin(), order.end(), 0);
    if (*rc::gen::arbitrary<bool>()) {
      std::shuffle(order.begin(), order.end(), std::minstd_rand(*rc::gen::inRange<unsigned>(0, 1000)));
    }
    const auto gap = *rc::gen::element<std::uint32_t>(0, 0, 3, 5000);
    const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, blocksize, order, gap), plain.size());
    RC_ASSERT(opened.reader != nullptr);
    RC_ASSERT(opened.reader->decoder().block_count() == count);
    const auto first = *rc::gen::inRange<std::uint32_t>(0, count);
    const auto blocks = *rc::gen::inRange<std::uint32_t>(1, count - first + 1);
    const auto bytes = decode_blocks(*opened.reader, first, blocks);
    RC_ASSERT(bytes.has_value());
    RC_ASSERT(std::equal(bytes->begin(), bytes->end(), plain.begin() + static_cast<std::ptrdiff_t>(first) * blocksize));
  }));
}

TEST(ChunkReader, NeighboursAreFetchedTogetherWhateverTheirOrder) {
  const Bytes plain = noise(100000);
  std::vector<std::uint32_t> backwards(100);
  std::iota(backwards.rbegin(), backwards.rend(), 0);
  for (const auto& order : {std::vector<std::uint32_t>{}, backwards}) {
    const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 1000, order), plain.size());
    static_cast<void>(opened.source->reads());
    const auto bytes = decode_blocks(*opened.reader, 0, 100);
    ASSERT_TRUE(bytes);
    EXPECT_EQ(*bytes, plain);
    EXPECT_EQ(opened.source->reads(), 1U);
  }
}

TEST(ChunkReader, ASingleBlockTakesOneReadOfItsOwnBytes) {
  const Bytes plain = noise(100000);
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 1000), plain.size());
  static_cast<void>(opened.source->reads());
  static_cast<void>(opened.source->count());
  ASSERT_TRUE(decode_blocks(*opened.reader, 57, 1));
  EXPECT_EQ(opened.source->reads(), 1U);
  EXPECT_EQ(opened.source->count(), 1004U);
}

TEST(ChunkReader, ScratchMemoryIsBoundedForLargeChunks) {
  const Bytes plain = noise(8 << 20);
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 64 << 10), plain.size());
  EXPECT_LE(opened.reader->scratch_bytes(0, 128), std::uint64_t{2} << 20);
  const auto bytes = decode_blocks(*opened.reader, 0, 128);
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, plain);
}

TEST(ChunkReader, MemcpyedChunksAreReadDirectlyIntoTheBuffer) {
  const Bytes plain = noise(300000);
  const OpenedChunk opened = open_chunk(test::plain_chunk(plain), plain.size());
  static_cast<void>(opened.source->reads());
  const auto bytes = decode_blocks(*opened.reader, 0, opened.reader->decoder().block_count());
  ASSERT_TRUE(bytes);
  EXPECT_EQ(*bytes, plain);
  EXPECT_EQ(opened.source->reads(), 1U);
  EXPECT_EQ(opened.reader->scratch_bytes(0, 5), 0U);
  Bytes part(1000);
  ASSERT_TRUE(opened.reader->read_plain(123456, part));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), plain.begin() + 123456));
}

TEST(ChunkReader, AnUnexpectedLengthIsCorruptionOfTheChunk) {
  const Bytes plain = noise(1000);
  for (const std::size_t expected : {std::size_t{999}, std::size_t{1001}}) {
    const auto opened = test::open_frame(frame_of(test::plain_chunk(plain), expected).build());
    ASSERT_TRUE(opened);
    const auto reader = ChunkReader::open(**opened, ChunkNumber{0});
    ASSERT_FALSE(reader);
    EXPECT_EQ(reader.error().kind, codec::ErrorKind::corruption);
    EXPECT_EQ(reader.error().chunk, 0);
  }
}

TEST(ChunkReader, CorruptionNamesChunkAndFileOffset) {
  Bytes chunk = test::raw_block_chunk(noise(1000), 100);
  codec::store_le(&chunk[32 + 40], std::int32_t{-300});
  const OpenedChunk opened = open_chunk(chunk, 1000);
  const auto bytes = decode_blocks(*opened.reader, 0, 1);
  ASSERT_FALSE(bytes);
  EXPECT_EQ(bytes.error().chunk, 0);
  EXPECT_EQ(bytes.error().file_offset, 1000 + 97U);
  EXPECT_TRUE(decode_blocks(*opened.reader, 1, 9)) << "the other blocks are undamaged";
}

TEST(ChunkReader, BuffersOfTheWrongSizeAreRefused) {
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(noise(1000), 300), 1000);
  codec::DecodeContext context;
  Bytes buffer(300);
  const std::vector<ByteSpan> last = {buffer};
  EXPECT_FALSE(opened.reader->decode(context, 3, last, {})) << "the last block has 100 bytes";
  EXPECT_FALSE(opened.reader->decode(context, 4, last, {}));
  EXPECT_FALSE(opened.reader->decode(context, UINT32_MAX, last, {}));
}

TEST(ChunkReader, DeltaChunksNeedBlockZero) {
  int tried = 0;
  for (const test::Row& row : test::read_manifest(test::golden_dir() / "cframe" / "MANIFEST.tsv")) {
    if (row["filters"].find("delta+") != 0 || row["offset"] != "0" || row["sha256"] == "-") continue;
    const auto opened = test::open_frame(row.file("path").string());
    ASSERT_TRUE(opened);
    const auto reader = ChunkReader::open(**opened, ChunkNumber{0});
    ASSERT_TRUE(reader);
    const codec::ChunkDecoder& decoder = (*reader)->decoder();
    if (!decoder.needs_reference() || decoder.block_count() < 2) continue;
    ++tried;
    const auto plain = test::read_chunk(**opened, 0);
    ASSERT_TRUE(plain);
    const codec::ByteView zero = codec::ByteView(*plain).first(decoder.block_range(0).size());
    EXPECT_FALSE(decode_blocks(**reader, 1, 1)) << row["path"];
    const auto one = decode_blocks(**reader, 1, 1, zero);
    ASSERT_TRUE(one) << row["path"];
    EXPECT_TRUE(std::equal(one->begin(), one->end(), plain->begin() + static_cast<std::ptrdiff_t>(zero.size())));
    const auto all = decode_blocks(**reader, 0, decoder.block_count());
    ASSERT_TRUE(all) << row["path"];
    EXPECT_EQ(*all, *plain);
  }
  EXPECT_GT(tried, 5);
}

TEST(ChunkReader, OneReaderServesManyThreads) {
  const Bytes plain = noise(200000);
  const OpenedChunk opened = open_chunk(test::raw_block_chunk(plain, 1000), plain.size());
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint32_t t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 200; ++i) {
        const std::uint32_t block = (i * 37 + t * 11) % 200;
        const auto bytes = decode_blocks(*opened.reader, block, 1);
        if (!bytes ||
            !std::equal(bytes->begin(), bytes->end(), plain.begin() + static_cast<std::ptrdiff_t>(block) * 1000))
          ++wrong;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
}

TEST(ChunkReader, StorageTellsHowTheBytesAreObtained) {
  const Bytes plain = noise(1000);
  EXPECT_EQ(open_chunk(test::plain_chunk(plain), plain.size()).reader->storage(), frame::Storage::raw);
  EXPECT_EQ(open_chunk(test::raw_block_chunk(plain, 100), plain.size()).reader->storage(), frame::Storage::blocks);
  FrameBuilder zeros = frame_of({}, plain.size());
  zeros.index = test::plain_index({frame::layout::kZerosEntry});
  const auto container = test::open_frame(zeros.build());
  ASSERT_TRUE(container) << describe(container.error());
  const auto reader = ChunkReader::open(**container, ChunkNumber{0});
  ASSERT_TRUE(reader) << describe(reader.error());
  EXPECT_EQ((*reader)->storage(), frame::Storage::zeros);
  EXPECT_EQ((*reader)->stored_bytes(), 0U);
}

TEST(ChunkReader, StoredBytesAreThoseOfTheFile) {
  const Bytes plain = noise(5000);
  const Bytes chunk = test::raw_block_chunk(plain, 1000);
  const OpenedChunk opened = open_chunk(chunk, plain.size());
  ASSERT_EQ(opened.reader->stored_bytes(), chunk.size());
  Bytes stored(chunk.size());
  ASSERT_TRUE(opened.reader->read_stored(0, stored));
  EXPECT_EQ(stored, chunk);
  Bytes part(100);
  ASSERT_TRUE(opened.reader->read_stored(chunk.size() - part.size(), part));
  EXPECT_TRUE(std::equal(part.begin(), part.end(), chunk.end() - 100));
  EXPECT_FALSE(opened.reader->read_stored(chunk.size() - part.size() + 1, part));
  EXPECT_FALSE(opened.reader->read_stored(UINT64_MAX, part));
}

TEST(ChunkReader, StoredBytesOfADamagedChunkAreRefusedByItsDigest) {
  const Bytes good = test::file_bytes(test::golden_dir() / "legacy" / "bp-ck-sha256.blp");
  const test::TempDir dir;
  const auto read = [&dir](const Bytes& bytes, std::int64_t chunk) -> codec::Result<Bytes> {
    const auto container = test::open_frame(dir.write("x.blp", bytes).string());
    if (!container) return codec::Failure(container.error());
    const auto reader = ChunkReader::open(**container, ChunkNumber{chunk});
    if (!reader) return codec::Failure(reader.error());
    Bytes stored((*reader)->stored_bytes());
    if (auto done = (*reader)->read_stored(0, stored); !done) return codec::Failure(done.error());
    return stored;
  };
  const auto container = test::open_frame(dir.write("x.blp", good).string());
  ASSERT_TRUE(container) << describe(container.error());
  const auto location = (*container)->locate_chunk(ChunkNumber{1});
  ASSERT_TRUE(location);
  ASSERT_TRUE(location->verifier);
  const auto stored = read(good, 1);
  ASSERT_TRUE(stored) << describe(stored.error());
  const auto begin = good.begin() + static_cast<std::ptrdiff_t>(location->offset.value);
  EXPECT_TRUE(std::equal(stored->begin(), stored->end(), begin));
  Bytes damaged = good;
  damaged[location->offset.value + stored->size() - 1] ^= 1;
  const auto refused = read(damaged, 1);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().kind, codec::ErrorKind::corruption);
  EXPECT_EQ(refused.error().chunk, 1);
  EXPECT_TRUE(read(damaged, 0));
}

}  // namespace
}  // namespace cframefs
