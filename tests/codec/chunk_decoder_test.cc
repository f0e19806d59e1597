// Assembled chunks: every kind, every codec and filter, the rules of all versions.
#include "codec/chunk_decoder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/codec/chunk_decoding.h"

namespace cframefs {
namespace {

TEST(ChunkDecoder, EveryCodecSplitAndNot) {
  const Bytes plain = mixed_bytes(10001, 6);
  for (const auto format :
       {CodecFormat::blosclz, CodecFormat::lz4, CodecFormat::snappy, CodecFormat::zlib, CodecFormat::zstd}) {
    for (const bool split : {false, true}) {
      ChunkPlan plan;
      plan.format = format;
      plan.split = split;
      plan.typesize = 8;
      plan.filters[5] = kShuffle;
      expect_decodes(assemble(plan, plain), plain);
    }
  }
}

TEST(ChunkDecoder, BlocksInAnyOrder) {
  const Bytes plain = mixed_bytes(5000, 7);
  ChunkPlan plan;
  plan.block_order = {3, 0, 4, 2, 1};
  expect_decodes(assemble(plan, plain), plain);
  plan.filters[0] = kDelta;
  expect_decodes(assemble(plan, plain), plain);
}

TEST(ChunkDecoder, StrayBytesBetweenBlocksDoNotMatter) {
  const Bytes plain = mixed_bytes(5000, 8);
  ChunkPlan plan;
  plan.slack = 10;
  expect_decodes(assemble(plan, plain), plain);
}

TEST(ChunkDecoder, ShortHeadersOfEveryVersion) {
  const Bytes plain = mixed_bytes(20000, 9);
  for (const std::uint8_t version : {1, 2, 3, 4, 5}) {
    for (const std::uint8_t filter : {std::uint8_t{0}, kShuffle, kBitshuffle}) {
      ChunkPlan plan;
      plan.version = version;
      plan.short_header = true;
      plan.typesize = 4;
      plan.split = true;
      plan.filters[5] = filter;
      expect_decodes(assemble(plan, plain), plain);
    }
  }
}

TEST(ChunkDecoder, Blosc1SplitsBySizesWithoutTheFlag) {
  const Bytes plain = mixed_bytes(20000, 10);
  // Fewer than 128 items per block, and a typesize above 16: one stream each, even without the don't-split flag.
  for (const auto& [typesize, blocksize] : {std::pair<int, int>{8, 1016}, {17, 1020 * 17}}) {
    ChunkPlan plan;
    plan.version = 2;
    plan.short_header = true;
    plan.typesize = static_cast<std::uint8_t>(typesize);
    plan.blocksize = blocksize;
    Bytes chunk = assemble(plan, plain);
    chunk[2] &= 0xef;
    expect_decodes(chunk, plain);
    chunk[0] = 5;
    EXPECT_EQ(error_of(decode(chunk)), ErrorKind::corruption);
  }
}

TEST(ChunkDecoder, BitshuffleOfTheOldVersions) {
  const Bytes plain = mixed_bytes(4 * 1001 * 3, 11);
  ChunkPlan plan;
  plan.typesize = 4;
  plan.blocksize = 4 * 1001;
  plan.filters[4] = kBitshuffle;
  for (const std::uint8_t version : {2, 3, 4, 5}) {
    plan.version = version;
    expect_decodes(assemble(plan, plain), plain);
  }
  plan.version = 4;
  plan.old_bitshuffle = true;
  expect_decodes(assemble(plan, plain), plain, {0, true});
  EXPECT_NE(*decode(assemble(plan, plain)), plain);
}

TEST(ChunkDecoder, ShuffleMetaMeansRepetitionThenItemSize) {
  const Bytes plain = mixed_bytes(8000, 12);
  for (const std::uint8_t version : {3, 4, 5}) {
    for (const std::uint8_t meta : {0, 1, 2, 5}) {
      ChunkPlan plan;
      plan.version = version;
      plan.typesize = 4;
      plan.blocksize = 2000;
      plan.filters[4] = kShuffle;
      plan.metas[4] = meta;
      expect_decodes(assemble(plan, plain), plain);
    }
  }
}

TEST(ChunkDecoder, PipelinesOfSeveralFilters) {
  const Bytes plain = mixed_bytes(16384, 13);
  const std::vector<std::array<std::uint8_t, 6>> pipelines = {
      {kDelta, 0, 0, 0, 0, kShuffle},         {0, 0, 0, 0, kShuffle, kBytedelta},
      {kShuffle, kBitshuffle, 0, 0, 0, 0},    {kBitshuffle, kShuffle, kDelta, 0, 0, kBitshuffle},
      {kShuffle, 0, 0, kOldBytedelta, 0, 0},  {kTruncPrec, kDelta, kShuffle, 0, 0, kBytedelta},
      {kDelta, kDelta, kDelta, 0, 0, kDelta}, {kIntTrunc, 0, 0, 0, 0, 0}};
  for (const auto& filters : pipelines) {
    for (const int typesize : {1, 2, 4, 8, 16}) {
      ChunkPlan plan;
      plan.typesize = static_cast<std::uint8_t>(typesize);
      plan.filters = filters;
      for (std::size_t slot = 0; slot < 6; ++slot) {
        if (filters[slot] == kBytedelta || filters[slot] == kOldBytedelta) {
          plan.metas[slot] = static_cast<std::uint8_t>(typesize);
        }
      }
      expect_decodes(assemble(plan, plain), plain);
    }
  }
}

TEST(ChunkDecoder, BytedeltaWithoutMetaTakesTheFramesTypesize) {
  const Bytes plain = mixed_bytes(6000, 14);
  ChunkPlan plan;
  plan.typesize = 4;
  plan.blocksize = 3000;
  plan.filters[5] = kBytedelta;
  plan.metas[5] = 6;
  Bytes chunk = assemble(plan, plain);
  chunk[0x18 + 5] = 0;
  expect_decodes(chunk, plain, {6, false});
  EXPECT_NE(*decode(chunk), plain);
  plan.metas[5] = 4;
  chunk = assemble(plan, plain);
  chunk[0x18 + 5] = 0;
  expect_decodes(chunk, plain);
}

TEST(ChunkDecoder, OldBytedeltaTakesTheMissingTailFromThePreviousBlock) {
  // The writer's buffer held bytes of the previous block there, and the decoder restores these (filter_decoder.h).
  Bytes plain = mixed_bytes(700 + 355, 15);
  ChunkPlan plan;
  plan.typesize = 7;
  plan.blocksize = 700;
  plan.filters[4] = kShuffle;
  plan.filters[5] = kOldBytedelta;
  plan.metas[5] = 7;
  const Bytes shuffled = apply_shuffle(7, Bytes(plain.begin(), plain.begin() + 700));
  Bytes expected = plain;
  std::copy(shuffled.begin() + 350, shuffled.begin() + 355, expected.begin() + 700 + 350);
  expect_decodes(assemble(plan, plain), expected);
  plan.block_order = {1, 0};
  expect_decodes(assemble(plan, plain), expected);

  // The missing tail of block 0 cannot be restored.
  plan.block_order = {};
  EXPECT_EQ(error_of(decode(assemble(plan, Bytes(plain.begin(), plain.begin() + 355)))), ErrorKind::unsupported);
}

TEST(ChunkDecoder, FiltersThatCannotBeUndoneAreNamed) {
  const Bytes plain = mixed_bytes(1000, 16);
  for (const int filter : {5, 31, 37, 159, 160, 255}) {
    ChunkPlan plan;
    plan.filters[2] = static_cast<std::uint8_t>(filter);
    const auto decoded = decode(assemble(plan, plain));
    EXPECT_EQ(error_of(decoded), ErrorKind::unsupported);
    EXPECT_NE(decoded.error().reason.find(std::to_string(filter)), std::string::npos);
  }
}

TEST(ChunkDecoder, Dictionaries) {
  const Bytes dictionary = random_bytes(3000, 17);
  Bytes plain;
  for (int i = 0; i < 40; ++i) {
    plain += Bytes(dictionary.begin() + 70 * i, dictionary.begin() + 70 * i + 200);
    plain += random_bytes(20, static_cast<std::uint32_t>(i));
  }
  for (const auto format : {CodecFormat::lz4, CodecFormat::zstd}) {
    for (const bool split : {false, true}) {
      ChunkPlan plan;
      plan.format = format;
      plan.split = split;
      plan.typesize = 2;
      plan.dictionary = dictionary;
      Bytes chunk = assemble(plan, plain);
      expect_decodes(chunk, plain);
      // The dictionary makes the streams shorter, so the chunk really uses it.
      ChunkPlan without = plan;
      without.dictionary.clear();
      EXPECT_LT(chunk.size() - dictionary.size(), assemble(without, plain).size());

      const std::size_t size_at = 32 + 4 * ((plain.size() + 1023) / 1024);
      for (const std::int32_t size : {0, -1, 32769, INT32_MAX, static_cast<std::int32_t>(chunk.size())}) {
        Bytes damaged = chunk;
        codec::store_le(&damaged[size_at], size);
        EXPECT_EQ(error_of(decode(damaged)), ErrorKind::corruption) << size;
      }
    }
  }
}

TEST(ChunkDecoder, OldChunksWithADictionaryAreNotSplit) {
  const Bytes plain = mixed_bytes(4096, 18);
  ChunkPlan plan;
  plan.version = 4;
  plan.format = CodecFormat::zstd;
  plan.typesize = 4;
  plan.dictionary = random_bytes(300, 19);
  Bytes chunk = assemble(plan, plain);
  chunk[2] &= 0xef;
  expect_decodes(chunk, plain);
}

TEST(ChunkDecoder, VariableLengthBlocks) {
  const Bytes plain = mixed_bytes(1 + 700 + 3 + 2296, 20);
  for (const auto format : {CodecFormat::blosclz, CodecFormat::lz4, CodecFormat::zlib, CodecFormat::zstd}) {
    for (const bool dictionary : {false, true}) {
      ChunkPlan plan;
      plan.version = 6;
      plan.format = format;
      plan.typesize = 4;
      plan.filters[5] = kShuffle;
      plan.vl_lengths = {1, 700, 3, 2296};
      if (dictionary) plan.dictionary = random_bytes(500, 21);
      expect_decodes(assemble(plan, plain), plain);
    }
  }
}

TEST(ChunkDecoder, DamagedVariableLengthBlocks) {
  ChunkPlan plan;
  plan.version = 6;
  plan.vl_lengths = {100, 200, 300};
  const Bytes plain = random_bytes(600, 22);
  const Bytes chunk = assemble(plan, plain);
  const std::int32_t start = 32 + 3 * 4;
  for (const std::int32_t length : {0, -1, 99, 101, 500, INT32_MAX}) {
    Bytes damaged = chunk;
    codec::store_le(&damaged[static_cast<std::size_t>(start)], length);
    EXPECT_EQ(error_of(decode(damaged)), ErrorKind::corruption) << length;
  }
  for (const std::int32_t second : {start, start + 2, 0, -1, INT32_MAX}) {
    Bytes damaged = chunk;
    codec::store_le(&damaged[36], second);
    EXPECT_EQ(error_of(decode(damaged)), ErrorKind::corruption) << second;
  }
  Bytes longer = chunk;
  codec::store_le<std::int32_t>(&longer[4], 601);
  EXPECT_EQ(error_of(decode(longer)), ErrorKind::corruption);
}

TEST(ChunkDecoder, DeltaBeyondBlockZeroOfAVariableLengthChunk) {
  ChunkPlan plan;
  plan.version = 6;
  plan.vl_lengths = {300, 200, 300};
  plan.filters[0] = kDelta;
  const Bytes plain = mixed_bytes(800, 23);
  expect_decodes(assemble(plan, plain), plain);
  // A block longer than block 0 has no defined content.
  plan.vl_lengths = {250, 250, 300};
  plan.filters[0] = 0;
  Bytes chunk = assemble(plan, plain);
  chunk[0x10] = kDelta;
  EXPECT_EQ(error_of(decode(chunk)), ErrorKind::unsupported);
}

TEST(ChunkDecoder, Memcpyed) {
  for (const std::size_t size : {0, 1, 31, 1000, 65536, 65537, 300000}) {
    const Bytes plain = random_bytes(size, 24);
    expect_decodes(assemble_memcpyed(plain, 5, 32, 32), plain);
    expect_decodes(assemble_memcpyed(plain, 2, 16, 16), plain);
    expect_decodes(assemble_memcpyed(plain, 4, 16, 32), plain);
  }
  // The decoder ignores filters and the dictionary bit.
  Bytes chunk = assemble_memcpyed(random_bytes(100, 25), 5, 32, 32);
  chunk[0x10] = 99;
  chunk[0x1f] = 0x01;
  expect_decodes(chunk, random_bytes(100, 25));
}

// semantics: R5
TEST(ChunkDecoder, SpecialValues) {
  expect_decodes(assemble_special(SpecialValue::zeros, 8, 200003, {}), Bytes(200003, 0));
  expect_decodes(assemble_special(SpecialValue::uninitialised, 4, 200000, {}), Bytes(200000, 0));
  for (const std::size_t width : {1, 2, 3, 8, 300, 70000}) {
    const Bytes value = random_bytes(width, 26);
    Bytes plain;
    for (int i = 0; i < 5; ++i)
      plain += value;
    const std::uint8_t typesize = width > 255 ? 1 : static_cast<std::uint8_t>(width);
    expect_decodes(assemble_special(SpecialValue::repeated, typesize, static_cast<std::int32_t>(plain.size()), value),
                   plain);
  }
  const Bytes float_nan{0, 0, 0xc0, 0x7f};
  const Bytes double_nan{0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
  Bytes floats;
  Bytes doubles;
  for (int i = 0; i < 20000; ++i) {
    floats += float_nan;
    doubles += double_nan;
  }
  expect_decodes(assemble_special(SpecialValue::nan, 4, 80000, {}), floats);
  expect_decodes(assemble_special(SpecialValue::nan, 8, 160000, {}), doubles);
}

TEST(ChunkDecoder, SpecialValuesThatAreNotStored) {
  DecodeContext context;
  const auto nan = ChunkDecoder::special(SpecialValue::nan, 80, 8);
  ASSERT_TRUE(nan);
  EXPECT_FALSE(nan->is_zeros());
  EXPECT_EQ(nan->block_count(), 1u);
  EXPECT_EQ(nan->stored_range(0).size(), 0u);
  Bytes out(80);
  ASSERT_TRUE(nan->decode_block(context, 0, {}, out));
  EXPECT_EQ(out[15], 0x7f);
  const auto zeros = ChunkDecoder::special(SpecialValue::zeros, 0x7fffffff, 300);
  ASSERT_TRUE(zeros);
  EXPECT_TRUE(zeros->is_zeros());
  EXPECT_EQ(zeros->nbytes(), 0x7fffffffu);
  EXPECT_EQ(zeros->block_at(0x7ffffffe), zeros->block_count() - 1);
  EXPECT_TRUE(ChunkDecoder::special(SpecialValue::uninitialised, 600, 300)->is_zeros());
  EXPECT_EQ(ChunkDecoder::special(SpecialValue::nan, 80, 2).error().kind, ErrorKind::unsupported);
  EXPECT_EQ(ChunkDecoder::special(SpecialValue::nan, 81, 8).error().kind, ErrorKind::corruption);
  EXPECT_EQ(ChunkDecoder::special(SpecialValue::zeros, 0, 4)->block_count(), 0u);
}

TEST(ChunkDecoder, InstrumentedChunksKeepTheirPipeline) {
  // Two blocks of four records of 16 bytes; the decoder does not undo the shuffle of the header.
  const Bytes records = random_bytes(2 * 4 * 16, 27);
  ChunkPlan plan;
  plan.typesize = 4;
  plan.blocksize = 64;
  plan.split = true;
  Bytes chunk = assemble(plan, records);
  chunk[0x15] = kShuffle;
  chunk[0x1f] = 0x80;
  expect_decodes(chunk, records);
}

}  // namespace
}  // namespace cframefs
