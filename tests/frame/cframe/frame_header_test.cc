// The fixed header and the metalayers, byte by byte.
#include "frame/cframe/frame_header.h"

#include <gtest/gtest.h>

#include "frame/cframe/fixed_metalayers.h"
#include "tests/support/frame_builder.h"
#include "tests/support/golden.h"
#include "tests/support/temp_dir.h"

namespace cframefs {
namespace {

using codec::ErrorKind;
using frame::parse_fixed_header;
using test::Bytes;
using test::FrameBuilder;

FrameBuilder sample() {
  Bytes plain(1000);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::uint8_t>(i);
  return test::plain_frame(plain, 300);
}

template <class T>
Bytes with(Bytes bytes, std::size_t at, T value) {
  codec::store_be(&bytes[at], value);
  return bytes;
}

TEST(FrameHeader, EveryFieldIsReadFromItsPlace) {
  FrameBuilder builder = sample();
  builder.typesize = 300;
  builder.blocksize = 4096;
  const Bytes bytes = builder.build();
  const auto header = parse_fixed_header(bytes);
  ASSERT_TRUE(header) << describe(header.error());
  const frame::FrameParameters& parameters = header->parameters;
  EXPECT_EQ(parameters.kind, frame::ContainerKind::cframe);
  EXPECT_EQ(parameters.frame_version, 2);
  EXPECT_EQ(parameters.compcode, 1);
  EXPECT_EQ(parameters.clevel, 5);
  EXPECT_EQ(parameters.split_mode, 4);
  EXPECT_EQ(parameters.filters[5], 1);
  EXPECT_EQ(parameters.typesize, 300);
  EXPECT_EQ(parameters.blocksize, 4096);
  EXPECT_EQ(parameters.chunksize, 300);
  EXPECT_EQ(parameters.nbytes, 1000U);
  EXPECT_EQ(parameters.cbytes, builder.chunk_section.size());
  EXPECT_EQ(parameters.header_length, 97U);
  EXPECT_EQ(parameters.frame_length, bytes.size());
  EXPECT_FALSE(parameters.variable_chunks);
  EXPECT_EQ(header->chunk_count, 4);
  EXPECT_TRUE(frame::check_extent(*header, bytes.size()));
  EXPECT_FALSE(frame::check_extent(*header, bytes.size() - 1));
}

TEST(FrameHeader, TheCodecByteRefersToTheCompcodeForRegisteredCodecs) {
  Bytes bytes = sample().build();
  bytes[0x1b] = 0x96;
  bytes[0x4d] = 35;
  bytes[0x4e] = 7;
  const auto header = parse_fixed_header(bytes);
  ASSERT_TRUE(header);
  EXPECT_EQ(header->parameters.compcode, 35);
  EXPECT_EQ(header->parameters.compcode_meta, 7);
  EXPECT_EQ(header->parameters.clevel, 9);
}

TEST(FrameHeader, AnEmptyFrameMayHaveAnyStaleLengthOfItsChunks) {
  FrameBuilder builder;
  builder.chunksize = -1;
  for (const std::int64_t stale : {std::int64_t{0}, std::int64_t{1} << 40, INT64_MAX, std::int64_t{-5}}) {
    const auto header = parse_fixed_header(with(builder.build(), 0x27, stale));
    ASSERT_TRUE(header) << stale;
    EXPECT_EQ(header->parameters.cbytes, 0U);
    EXPECT_EQ(header->chunk_count, 0);
  }
}

TEST(FrameHeader, EveryShorterPrefixIsRefused) {
  const Bytes bytes = sample().build();
  for (std::size_t length = 0; length < 87; ++length) {
    EXPECT_FALSE(parse_fixed_header(codec::ByteView(bytes).first(length))) << length;
  }
  EXPECT_TRUE(parse_fixed_header(codec::ByteView(bytes).first(87)));
}

struct Damage {
  const char* what;
  std::size_t at;
  std::uint8_t value;
  ErrorKind kind;
};

class FrameHeaderByte : public ::testing::TestWithParam<Damage> {};

TEST_P(FrameHeaderByte, IsChecked) {
  Bytes bytes = sample().build();
  bytes[GetParam().at] = GetParam().value;
  const auto header = parse_fixed_header(bytes);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind, GetParam().kind) << header.error().reason;
}

INSTANTIATE_TEST_SUITE_P(All, FrameHeaderByte,
                         ::testing::Values(Damage{"array", 0x00, 0x90, ErrorKind::corruption},
                                           Damage{"beta1", 0x00, 0x9b, ErrorKind::unsupported},
                                           Damage{"beta1_meta", 0x00, 0x9c, ErrorKind::unsupported},
                                           Damage{"beta2", 0x00, 0x9d, ErrorKind::unsupported},
                                           Damage{"magic", 0x04, 'X', ErrorKind::corruption},
                                           Damage{"magic_nul", 0x09, ' ', ErrorKind::corruption},
                                           Damage{"header_length_marker", 0x0a, 0xd3, ErrorKind::corruption},
                                           Damage{"header_length_sign", 0x0b, 0xff, ErrorKind::corruption},
                                           Damage{"frame_length_marker", 0x0f, 0xce, ErrorKind::corruption},
                                           Damage{"flags_marker", 0x18, 0xa5, ErrorKind::corruption},
                                           Damage{"version_1", 0x19, 0x11, ErrorKind::unsupported},
                                           Damage{"version_4", 0x19, 0x14, ErrorKind::unsupported},
                                           Damage{"offsets_of_32_bits", 0x19, 0x02, ErrorKind::unsupported},
                                           Damage{"type", 0x1a, 2, ErrorKind::corruption},
                                           Damage{"nbytes_sign", 0x1e, 0x80, ErrorKind::corruption},
                                           Damage{"cbytes_sign", 0x27, 0x80, ErrorKind::corruption},
                                           Damage{"typesize_sign", 0x30, 0x80, ErrorKind::corruption},
                                           Damage{"chunksize_sign", 0x3a, 0x80, ErrorKind::corruption},
                                           Damage{"filters_marker", 0x45, 0xd7, ErrorKind::corruption}),
                         [](const auto& instance) { return instance.param.what; });

TEST(FrameHeader, NumbersThatContradictEachOtherAreRefused) {
  const Bytes bytes = sample().build();
  EXPECT_FALSE(parse_fixed_header(with(bytes, 0x30, std::int32_t{0}))) << "typesize";
  EXPECT_FALSE(parse_fixed_header(with(bytes, 0x0b, std::int32_t{96}))) << "header length";
  EXPECT_FALSE(parse_fixed_header(with(bytes, 0x3a, std::int32_t{-1}))) << "data without chunk size";
  EXPECT_FALSE(parse_fixed_header(with(bytes, 0x3a, INT32_MAX))) << "chunk size";
  EXPECT_FALSE(parse_fixed_header(with(with(bytes, 0x1e, INT64_MAX), 0x3a, std::int32_t{1}))) << "chunk count";
  // The largest count that an index chunk can hold, and one more.
  const std::int64_t most = (INT32_MAX - 32) / 8;
  EXPECT_TRUE(parse_fixed_header(with(with(bytes, 0x1e, most), 0x3a, std::int32_t{1})));
  EXPECT_FALSE(parse_fixed_header(with(with(bytes, 0x1e, most + 1), 0x3a, std::int32_t{1})));
}

TEST(FrameHeader, ALengthWithoutRoomForTheTrailerIsRefused) {
  const Bytes bytes = sample().build();
  for (const std::uint64_t length : {std::uint64_t{0}, std::uint64_t{131}, UINT64_MAX}) {
    const auto header = parse_fixed_header(with(bytes, 0x10, length));
    ASSERT_TRUE(header);
    EXPECT_FALSE(frame::check_extent(*header, bytes.size())) << length;
  }
  const auto shortest = parse_fixed_header(with(bytes, 0x10, std::uint64_t{132}));
  ASSERT_TRUE(shortest);
  EXPECT_TRUE(frame::check_extent(*shortest, bytes.size()));
}

TEST(FrameHeader, FramesOfTheBetasAreUnsupportedNotCorrupt) {
  // Only the first 64 bytes, because one kind of these frames is shorter than the header of today.
  Bytes start = sample().build();
  start.resize(64);
  start[0] = 0x9b;
  const auto header = parse_fixed_header(start);
  ASSERT_FALSE(header);
  EXPECT_EQ(header.error().kind, ErrorKind::unsupported);
  EXPECT_NE(header.error().reason.find("beta"), std::string::npos);
}

FrameBuilder with_layers() {
  FrameBuilder builder = sample();
  builder.metalayers = {{"one", {1, 2, 3}}, {std::string(31, 'n'), {}}, {"", {9}}};
  return builder;
}

/// Reads the metalayers of a header of `length` bytes from a source of as many bytes.
frame::MetalayerSection metalayers_of(const Bytes& bytes, std::size_t length) {
  const auto source = frame::memory_source(Bytes(bytes.begin(), bytes.begin() + static_cast<std::ptrdiff_t>(length)));
  frame::RangeBuffer windows(*source);
  auto section = frame::read_metalayers(windows, length);
  EXPECT_TRUE(section);
  return section ? std::move(*section) : frame::MetalayerSection{};
}

TEST(Metalayers, AreReadInStoredOrder) {
  const FrameBuilder builder = with_layers();
  const Bytes bytes = builder.build();
  const auto section = metalayers_of(bytes, builder.header_length());
  EXPECT_FALSE(section.damage);
  ASSERT_EQ(section.layers.size(), 3U);
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ(section.layers[i].name, builder.metalayers[i].first);
    EXPECT_EQ(section.layers[i].content.value(), builder.metalayers[i].second);
  }
}

TEST(Metalayers, ADamagedOneDoesNotAffectTheOthers) {
  const FrameBuilder builder = with_layers();
  const Bytes good = builder.build();
  // The offset of the first metalayer follows its marker at 94, its name and D2.
  for (const std::int32_t offset : {-1, 0, 1 << 30, INT32_MAX}) {
    const Bytes bytes = with(good, 87 + 7 + 1 + 3 + 1, offset);
    const auto section = metalayers_of(bytes, builder.header_length());
    EXPECT_TRUE(section.damage) << offset;
    EXPECT_EQ(section.layers.size(), 2U) << offset;
  }
}

TEST(Metalayers, EveryTruncatedSectionIsReported) {
  const FrameBuilder builder = with_layers();
  const Bytes bytes = builder.build();
  for (std::size_t length = 0; length < builder.header_length(); ++length) {
    EXPECT_TRUE(metalayers_of(bytes, length).damage) << length;
  }
}

TEST(Metalayers, ContentsThatOverlapDoNotMultiplyMemory) {
  FrameBuilder builder = sample();
  for (int i = 0; i < 16; ++i)
    builder.metalayers.emplace_back(std::string(1, static_cast<char>('a' + i)), Bytes{});
  builder.metalayers.back().second.assign(100000, 7);
  Bytes bytes = builder.build();
  // All entries point to the long one.
  const std::size_t entry = 1 + 1 + 5;
  const auto place = codec::load_be<std::int32_t>(&bytes[94 + 15 * entry + 3]);
  for (std::size_t i = 0; i < 15; ++i)
    codec::store_be(&bytes[94 + i * entry + 3], place);
  const auto section = metalayers_of(bytes, builder.header_length());
  EXPECT_TRUE(section.damage);
  std::size_t total = 0;
  for (const frame::MetalayerPlace& layer : section.layers)
    total += layer.length;
  EXPECT_LE(total, builder.header_length());
}

}  // namespace
}  // namespace cframefs
