// The fields of the header, and all its possible contradictions (chunk.md sections 1 and 10).
#include "codec/format/chunk_header.h"

#include <functional>

#include <gtest/gtest.h>

#include "tests/codec/chunk_assembler.h"

namespace cframefs {
namespace {

using codec::CodecFormat;
using codec::ErrorKind;
using codec::parse_chunk_header;
using codec::SpecialValue;

// 1000 bytes, typesize 4, four blocks of 256 bytes, shuffled, lz4, unsplit.
Bytes normal_header() {
  Bytes header = extended_header(0x30, 4, 1000, 256, 500);
  header[0x15] = 1;
  header[0x16] = 1;
  return header;
}

TEST(ChunkHeader, ReadsEveryField) {
  Bytes bytes = normal_header();
  bytes[0x10] = 3;
  bytes[0x17] = 77;
  bytes[0x18] = 0xfe;
  bytes[0x1f] = 0x81;
  const auto header = parse_chunk_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->version, 5);
  EXPECT_EQ(header->flags, 0x35);
  EXPECT_EQ(header->typesize, 4);
  EXPECT_EQ(header->nbytes, 1000);
  EXPECT_EQ(header->blocksize, 256);
  EXPECT_EQ(header->cbytes, 500);
  EXPECT_EQ(header->length, 32u);
  EXPECT_TRUE(header->extended());
  EXPECT_EQ(header->filters, (std::array<std::uint8_t, 6>{3, 0, 0, 0, 0, 1}));
  EXPECT_EQ(header->filters_meta, (std::array<std::uint8_t, 6>{0xfe, 0, 0, 0, 0, 0}));
  EXPECT_EQ(header->compcode, 1);
  EXPECT_EQ(header->compcode_meta, 77);
  EXPECT_EQ(header->format, CodecFormat::lz4);
  EXPECT_EQ(header->special, SpecialValue::none);
  EXPECT_TRUE(header->dont_split);
  EXPECT_TRUE(header->dictionary);
  EXPECT_TRUE(header->instrumented);
  EXPECT_FALSE(header->memcpyed);
  EXPECT_FALSE(header->vl_blocks);
}

TEST(ChunkHeader, OnlyTheTwoMarkBitsDecideItsLength) {
  for (const std::uint8_t version : {1, 2, 3, 4, 5}) {
    Bytes bytes = normal_header();
    bytes[0] = version;
    EXPECT_EQ(parse_chunk_header(bytes)->length, 32u) << int{version};
    for (const std::uint8_t marks : {0x00, 0x01, 0x04}) {
      bytes[2] = static_cast<std::uint8_t>(0x30 | marks);
      EXPECT_EQ(parse_chunk_header(bytes)->length, 16u) << int{version};
    }
  }
}

TEST(ChunkHeader, DerivesThePipelineOfAShortHeaderFromItsFlags) {
  const auto filters = [](std::uint8_t flags) {
    Bytes bytes = normal_header();
    bytes[2] = flags;
    return parse_chunk_header(codec::ByteView(bytes).first(16))->filters;
  };
  using Slots = std::array<std::uint8_t, 6>;
  EXPECT_EQ(filters(0x10), (Slots{0, 0, 0, 0, 0, 0}));
  EXPECT_EQ(filters(0x11), (Slots{0, 0, 0, 0, 0, 1}));
  EXPECT_EQ(filters(0x14), (Slots{0, 0, 0, 0, 0, 2}));
  EXPECT_EQ(filters(0x19), (Slots{0, 0, 0, 0, 3, 1}));
}

TEST(ChunkHeader, IgnoresTheSixthSlotOfTheAlphas) {
  Bytes bytes = normal_header();
  bytes[0] = 3;
  bytes[0x15] = 0xee;
  bytes[0x1d] = 0xee;
  EXPECT_EQ(parse_chunk_header(bytes)->filters[5], 0);
  EXPECT_EQ(parse_chunk_header(bytes)->filters_meta[5], 0);
}

TEST(ChunkHeader, IgnoresTheDictionaryOfAMemcpyedChunk) {
  Bytes bytes = extended_header(0x02, 4, 468, 468, 500, 0, 0x01);
  EXPECT_FALSE(parse_chunk_header(bytes)->dictionary);
}

struct BadHeader {
  const char* name;
  ErrorKind kind;
  std::function<void(Bytes&)> change;
};

template <class T>
std::function<void(Bytes&)> set(std::size_t at, T value) {
  return [=](Bytes& bytes) { codec::store_le(&bytes[at], value); };
}

class BadHeaders : public testing::TestWithParam<BadHeader> {};

TEST_P(BadHeaders, AreRefused) {
  Bytes bytes = normal_header();
  ASSERT_TRUE(parse_chunk_header(bytes));
  GetParam().change(bytes);
  const auto header = parse_chunk_header(bytes);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind, GetParam().kind);
  EXPECT_FALSE(header.error().reason.empty());
}

constexpr ErrorKind kCorrupt = ErrorKind::corruption;
constexpr ErrorKind kUnsupported = ErrorKind::unsupported;

// Makes a special chunk of the normal one: sets the value, and stores nothing after the header.
std::function<void(Bytes&)> special(std::uint8_t value, std::uint8_t typesize, std::int32_t nbytes,
                                    std::int32_t cbytes) {
  return [=](Bytes& bytes) { bytes = extended_header(0, typesize, nbytes, 256, cbytes, 0, value); };
}

INSTANTIATE_TEST_SUITE_P(
    Chunk, BadHeaders,
    testing::Values(
        BadHeader{"empty", kCorrupt, [](Bytes& b) { b.clear(); }},
        BadHeader{"cut_in_short_part", kCorrupt, [](Bytes& b) { b.resize(15); }},
        BadHeader{"cut_in_extension", kCorrupt, [](Bytes& b) { b.resize(31); }},
        BadHeader{"version_0", kUnsupported, set<std::uint8_t>(0, 0)},
        BadHeader{"version_7", kUnsupported, set<std::uint8_t>(0, 7)},
        BadHeader{"version_255", kUnsupported, set<std::uint8_t>(0, 255)},
        BadHeader{"typesize_0", kCorrupt, set<std::uint8_t>(3, 0)},
        BadHeader{"nbytes_negative", kCorrupt, set<std::int32_t>(4, -1)},
        BadHeader{"nbytes_least", kCorrupt, set<std::int32_t>(4, INT32_MIN)},
        BadHeader{"nbytes_above_limit", kCorrupt, set<std::int32_t>(4, codec::kMaxChunkBytes + 1)},
        BadHeader{"blocksize_0", kCorrupt, set<std::int32_t>(8, 0)},
        BadHeader{"blocksize_negative", kCorrupt, set<std::int32_t>(8, -256)},
        BadHeader{"blocksize_above_limit", kCorrupt, set<std::int32_t>(8, codec::kMaxBlockBytes + 1)},
        BadHeader{"cbytes_below_header", kCorrupt, set<std::int32_t>(12, 31)},
        BadHeader{"cbytes_negative", kCorrupt, set<std::int32_t>(12, -1)},
        BadHeader{"block_starts_do_not_fit", kCorrupt, set<std::int32_t>(12, 32 + 4 * 4 - 1)},
        BadHeader{"block_starts_overflow", kCorrupt,
                  [](Bytes& b) { b = extended_header(0x30, 1, codec::kMaxChunkBytes, 1, 500); }},
        BadHeader{"lazy", kCorrupt, set<std::uint8_t>(0x1f, 0x08)},
        BadHeader{"flags2_unknown", kUnsupported, set<std::uint8_t>(0x1e, 0x02)},
        BadHeader{"delta_flag_in_blosc1", kUnsupported,
                  [](Bytes& b) {
                    b[0] = 2;
                    b[2] = 0x08;
                  }},
        BadHeader{"special_5", kCorrupt, special(0x50, 4, 1000, 32)},
        BadHeader{"special_7", kCorrupt, special(0x70, 4, 1000, 32)},
        BadHeader{"nan_of_typesize_2", kUnsupported, special(0x20, 2, 1000, 32)},
        BadHeader{"nan_partial_item", kCorrupt, special(0x20, 8, 1001, 32)},
        BadHeader{"uninitialised_partial_item", kCorrupt, special(0x40, 4, 1002, 32)},
        BadHeader{"repeated_nothing", kCorrupt, special(0x30, 4, 1000, 32)},
        BadHeader{"repeated_no_divisor", kCorrupt, special(0x30, 4, 1000, 32 + 7)},
        BadHeader{"repeated_longer_than_chunk", kCorrupt, special(0x30, 4, 1000, 32 + 2000)},
        BadHeader{"special_and_memcpyed", kCorrupt,
                  [](Bytes& b) { b = extended_header(0x02, 4, 1000, 256, 1032, 0, 0x10); }},
        BadHeader{"memcpyed_too_short", kCorrupt, [](Bytes& b) { b = extended_header(0x02, 4, 1000, 256, 1031); }},
        BadHeader{"memcpyed_too_long", kCorrupt, [](Bytes& b) { b = extended_header(0x02, 4, 1000, 256, 1033); }},
        BadHeader{"memcpyed_of_16_behind_32", kCorrupt,
                  [](Bytes& b) { b = extended_header(0x02, 4, 1000, 256, 1016); }},
        BadHeader{"vl_and_memcpyed", kCorrupt, [](Bytes& b) { b = extended_header(0x12, 1, 1000, 4, 1032, 1); }},
        BadHeader{"vl_and_special", kCorrupt, [](Bytes& b) { b = extended_header(0x10, 1, 1000, 4, 32, 1, 0x10); }},
        BadHeader{"vl_more_blocks_than_bytes", kCorrupt, [](Bytes& b) { b = extended_header(0x10, 1, 3, 4, 500, 1); }},
        BadHeader{"vl_no_blocks", kCorrupt, [](Bytes& b) { b = extended_header(0x10, 1, 1000, 0, 500, 1); }},
        BadHeader{"vl_starts_do_not_fit", kCorrupt,
                  [](Bytes& b) { b = extended_header(0x10, 1, codec::kMaxChunkBytes, 1 << 30, 500, 1); }}),
    [](const testing::TestParamInfo<BadHeader>& row) { return row.param.name; });

TEST(ChunkHeader, AcceptsLimitsAndOddities) {
  // Memcpyed chunks of the betas: 16 bytes of junk after a short header.
  Bytes bytes = extended_header(0x02, 4, 1000, 256, 1032);
  bytes[2] = 0x02;
  EXPECT_TRUE(parse_chunk_header(bytes));
  codec::store_le<std::int32_t>(&bytes[12], 1016);
  EXPECT_TRUE(parse_chunk_header(bytes));
  // Zeros need not be whole items; an empty chunk is only a header.
  EXPECT_TRUE(parse_chunk_header(assemble_special(SpecialValue::zeros, 8, 1001, {})));
  EXPECT_TRUE(parse_chunk_header(extended_header(0x02, 4, 0, 1, 32)));
  for (const std::uint8_t dictionary : {0, 1}) {
    Bytes empty = extended_header(0x02, 4, 0, 1, 32);
    empty[31] = static_cast<std::uint8_t>(0x10 | dictionary);  // special: zeros
    const auto header = parse_chunk_header(empty);
    ASSERT_TRUE(header) << header.error().reason;
    EXPECT_EQ(header->special, SpecialValue::zeros);
    EXPECT_FALSE(header->memcpyed);
    EXPECT_FALSE(header->dictionary);
  }
  EXPECT_TRUE(parse_chunk_header(extended_header(0x02, 4, codec::kMaxChunkBytes, 256, INT32_MAX)));
  // versionlz is ignored.
  bytes[1] = 255;
  EXPECT_TRUE(parse_chunk_header(bytes));
}

}  // namespace
}  // namespace cframefs
