// Assembled chunks: inconsistent sizes, invalid block positions, ranges compared with whole chunks, damage.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codec/chunk_decoder.h"
#include "tests/codec/chunk_decoding.h"

namespace cframefs {
namespace {

TEST(ChunkDecoder, ABlocksizeThatIsNoMultipleOfTheTypesizeIsRoundedDown) {
  const Bytes plain = mixed_bytes(7000, 28);
  ChunkPlan plan;
  plan.typesize = 4;
  plan.blocksize = 1000;
  plan.split = true;
  plan.filters[5] = kShuffle;
  Bytes chunk = assemble(plan, plain);
  codec::store_le<std::int32_t>(&chunk[8], 1003);
  expect_decodes(chunk, plain);
}

TEST(ChunkDecoder, ABlocksizeAboveTheChunkIsClipped) {
  const Bytes plain = mixed_bytes(800, 29);
  ChunkPlan plan;
  plan.typesize = 8;
  plan.blocksize = 800;
  plan.split = true;
  Bytes chunk = assemble(plan, plain);
  codec::store_le<std::int32_t>(&chunk[8], 8000);
  expect_decodes(chunk, plain);
}

TEST(ChunkDecoder, BlockStartsOutsideTheChunkAreCorrupt) {
  ChunkPlan plan;
  const Bytes chunk = assemble(plan, mixed_bytes(4096, 30));
  const auto size = static_cast<std::int32_t>(chunk.size());
  for (const std::int32_t start : {-1, INT32_MIN, 0, 31, 32, 32 + 4 * 4 - 1, size - 3, size, size + 1, INT32_MAX}) {
    Bytes damaged = chunk;
    codec::store_le(&damaged[36], start);
    EXPECT_EQ(error_of(decode(damaged)), ErrorKind::corruption) << start;
  }
}

TEST(ChunkDecoder, CoincidingBlockStartsDoNotExtendTheStoredRange) {
  constexpr std::uint32_t kBlock = 16;
  constexpr std::uint32_t kBlocks = 1000;
  const std::uint32_t at = 32 + 4 * kBlocks;
  const auto length = static_cast<std::int32_t>(at + (1 << 20));
  Bytes chunk = extended_header(0x15 | 1 << 5, 1, kBlock * kBlocks, kBlock, length);
  chunk.resize(static_cast<std::size_t>(length));
  for (std::uint32_t block = 0; block < kBlocks; ++block)
    codec::store_le(&chunk[32 + std::size_t{4} * block], at);
  codec::store_le<std::int32_t>(&chunk[at], -65);
  chunk[at + 4] = 1;
  const auto decoder = ChunkDecoder::parse(chunk);
  ASSERT_TRUE(decoder);
  std::uint64_t stored = 0;
  for (std::uint32_t block = 0; block < kBlocks; ++block)
    stored += decoder->stored_range(block).size();
  EXPECT_LE(stored, kBlocks * (kBlock + 100)) << "each range extends to the end of the chunk";
  DecodeContext context;
  Bytes plain(kBlock * kBlocks);
  ASSERT_TRUE(decode_range(context, *decoder, chunk, 0, plain));
  EXPECT_EQ(plain, Bytes(plain.size(), 65));
}

TEST(ChunkDecoder, AVariableLengthBlockStoredInFarMoreBytesThanItHoldsIsCorrupt) {
  ChunkPlan plan;
  plan.version = 6;
  plan.vl_lengths = {500, 300};
  Bytes chunk = assemble(plan, mixed_bytes(800, 33));
  ASSERT_TRUE(ChunkDecoder::parse(chunk));
  chunk.resize(chunk.size() + 5000);
  codec::store_le(&chunk[12], static_cast<std::int32_t>(chunk.size()));
  const auto decoder = ChunkDecoder::parse(chunk);
  ASSERT_FALSE(decoder);
  EXPECT_EQ(decoder.error().kind, ErrorKind::corruption);
}

TEST(ChunkDecoder, ErrorsNameTheBlock) {
  ChunkPlan plan;
  Bytes chunk = assemble(plan, mixed_bytes(4096, 31));
  const auto start = codec::load_le<std::int32_t>(&chunk[32 + 4 * 2]);
  codec::store_le<std::int32_t>(&chunk[static_cast<std::size_t>(start)], -300);
  const auto decoded = decode(chunk);
  ASSERT_EQ(error_of(decoded), ErrorKind::corruption);
  EXPECT_NE(decoded.error().reason.find("block 2"), std::string::npos);
}

TEST(ChunkDecoder, BuffersOfTheWrongSizeAreInvalid) {
  ChunkPlan plan;
  plan.filters[0] = kDelta;
  const Bytes chunk = assemble(plan, mixed_bytes(4000, 32));
  const auto decoder = ChunkDecoder::parse(chunk);
  ASSERT_TRUE(decoder);
  EXPECT_TRUE(decoder->needs_reference());
  DecodeContext context;
  const codec::ByteRange range = decoder->stored_range(1);
  const codec::ByteView stored = codec::ByteView(chunk).subspan(range.begin, range.size());
  Bytes out(1024);
  const Bytes reference(1024);
  const auto kind = [&](std::uint32_t block, codec::ByteView bytes, codec::ByteSpan place, codec::ByteView plain) {
    const auto decoded = decoder->decode_block(context, block, bytes, place, plain);
    return decoded ? ErrorKind::io : decoded.error().kind;
  };
  EXPECT_EQ(kind(1, stored, out, reference), ErrorKind::io);  // means success here
  EXPECT_EQ(kind(4, stored, out, reference), ErrorKind::invalid);
  EXPECT_EQ(kind(1, stored.first(stored.size() - 1), out, reference), ErrorKind::invalid);
  EXPECT_EQ(kind(1, stored, codec::ByteSpan(out).first(1023), reference), ErrorKind::invalid);
  EXPECT_EQ(kind(1, stored, out, {}), ErrorKind::invalid);
  EXPECT_EQ(kind(1, stored, out, codec::ByteView(reference).first(1000)), ErrorKind::invalid);

  EXPECT_EQ(decode_range(context, *decoder, chunk, 4001, {}).error().kind, ErrorKind::invalid);
  EXPECT_EQ(decode_range(context, *decoder, chunk, 3000, codec::ByteSpan(out).first(1001)).error().kind,
            ErrorKind::invalid);
  EXPECT_EQ(decode_range(context, *decoder, codec::ByteView(chunk).first(chunk.size() - 1), 0, out).error().kind,
            ErrorKind::invalid);
}

ChunkPlan any_plan(std::size_t size) {
  ChunkPlan plan;
  plan.version = *rc::gen::element<std::uint8_t>(3, 4, 5);
  plan.typesize =
      *rc::gen::oneOf(rc::gen::element<std::uint8_t>(1, 2, 4, 8, 16), rc::gen::inRange<std::uint8_t>(1, 255));
  plan.blocksize = plan.typesize * *rc::gen::inRange(1, 3000 / plan.typesize + 2);
  plan.blocksize = std::min(plan.blocksize, static_cast<std::int32_t>(size));
  if (plan.blocksize > plan.typesize) plan.blocksize -= plan.blocksize % plan.typesize;
  plan.format = *rc::gen::element(CodecFormat::blosclz, CodecFormat::lz4, CodecFormat::snappy, CodecFormat::zlib,
                                  CodecFormat::zstd);
  plan.split = plan.blocksize >= plan.typesize && *rc::gen::arbitrary<bool>();
  plan.runs = *rc::gen::arbitrary<bool>();
  for (std::size_t slot = 0; slot < 5; ++slot) {
    plan.filters[slot] = *rc::gen::weightedElement<std::uint8_t>(
        {{6, std::uint8_t{0}}, {2, kShuffle}, {1, kBitshuffle}, {1, kDelta}, {1, kBytedelta}, {1, kIntTrunc}});
    if (plan.filters[slot] == kBytedelta) plan.metas[slot] = *rc::gen::inRange<std::uint8_t>(1, 20);
  }
  if (*rc::gen::inRange(0, 4) == 0 && plan.version > 4) plan.dictionary = random_bytes(500, 33);
  const std::size_t blocks =
      (size + static_cast<std::size_t>(plan.blocksize) - 1) / static_cast<std::size_t>(plan.blocksize);
  plan.block_order.resize(blocks);
  for (std::uint32_t i = 0; i < blocks; ++i)
    plan.block_order[i] = i;
  std::shuffle(plan.block_order.begin(), plan.block_order.end(), std::mt19937(*rc::gen::arbitrary<std::uint32_t>()));
  return plan;
}

RC_GTEST_PROP(ChunkProperty, AnyChunkDecodesToWhatWasPutIn, (std::uint32_t seed)) {
  const Bytes plain = mixed_bytes(*rc::gen::inRange<std::size_t>(1, 20000), seed);
  expect_decodes(assemble(any_plan(plain.size()), plain), plain);
  RC_ASSERT(!testing::Test::HasFailure());
}

RC_GTEST_PROP(ChunkProperty, NoDamageLeadsBeyondTheBuffers, (std::uint32_t seed)) {
  const Bytes plain = mixed_bytes(*rc::gen::inRange<std::size_t>(1, 8000), seed);
  Bytes chunk = assemble(any_plan(plain.size()), plain);
  std::mt19937 random(seed);
  for (int i = 0; i < 4; ++i) {
    const std::size_t reach = random() % 2 == 0 ? std::min<std::size_t>(chunk.size(), 80) : chunk.size();
    chunk[random() % reach] ^= static_cast<std::uint8_t>(1u << random() % 8);
  }
  const auto header = codec::parse_chunk_header(chunk);
  if (header && header->nbytes > 1 << 20) return;
  const auto decoded = decode(chunk);
  // Not by ||: RC_ASSERT evaluates both sides.
  if (!decoded)
    RC_ASSERT(decoded.error().kind == ErrorKind::corruption || decoded.error().kind == ErrorKind::unsupported);
}

}  // namespace
}  // namespace cframefs
