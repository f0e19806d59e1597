// The streams of a block (chunk.md sections 4 and 6), and the errors of each codec for damaged streams.
#include "codec/stream/streams.h"

#include <gtest/gtest.h>

#include "codec/stream/decode_context.h"
#include "tests/codec/chunk_assembler.h"

namespace cframefs {
namespace {

using codec::BlockStreams;
using codec::CodecFormat;
using codec::DecodeContext;
using codec::ErrorKind;
using codec::StreamCodec;

Bytes field(std::int32_t length) {
  Bytes bytes;
  append_le(bytes, length);
  return bytes;
}

Bytes joined(std::initializer_list<Bytes> parts) {
  Bytes all;
  for (const Bytes& part : parts)
    all += part;
  return all;
}

struct Block {
  std::uint32_t count = 1;
  std::uint32_t plain = 8;
  bool runs = true;
  CodecFormat format = CodecFormat::lz4;
};

codec::Result<Bytes> decode(const Block& block, const Bytes& stored) {
  BlockStreams streams;
  const auto parsed = streams.parse(stored, block.count, block.plain, block.runs, {block.format, 200});
  if (!parsed) return codec::Failure(parsed.error());
  Bytes out(block.plain, 0xa5);
  DecodeContext context;
  const auto decoded = streams.decode(context.states(), StreamCodec{block.format, 200, nullptr}, out);
  if (!decoded) {
    std::vector<codec::Plane> none(streams.count());
    const auto planes = streams.decode_planes(context.states(), StreamCodec{block.format, 200, nullptr}, out, none);
    EXPECT_FALSE(planes);
    EXPECT_EQ(planes.error().reason, decoded.error().reason);
  }
  if (!decoded) return codec::Failure(decoded.error());
  // decode_planes() gives the same bytes.
  Bytes scratch(block.plain, 0xa5);
  std::vector<codec::Plane> planes(streams.count());
  EXPECT_TRUE(streams.decode_planes(context.states(), StreamCodec{block.format, 200, nullptr}, scratch, planes));
  const std::size_t length = block.plain / block.count;
  for (std::size_t i = 0; i < block.plain; ++i)
    EXPECT_EQ(*planes[i / length].from(i % length), out[i]) << "byte " << i;
  return out;
}

ErrorKind error_of(const Block& block, const Bytes& stored) {
  const auto decoded = decode(block, stored);
  EXPECT_FALSE(decoded.has_value());
  return decoded ? ErrorKind::invalid : decoded.error().kind;
}

TEST(Streams, RunsRawBytesAndCodecOutputSideBySide) {
  const Bytes text(100, 'x');
  const Bytes packed = compress(CodecFormat::lz4, {}, text);
  ASSERT_LT(packed.size(), text.size());
  const Bytes noise = random_bytes(100, 1);
  const Bytes stored = joined({field(0),
                               field(-7),
                               {0x01},
                               field(100),
                               noise,
                               field(static_cast<std::int32_t>(packed.size())),
                               packed,
                               {0xee, 0xee}});
  const auto decoded = decode({4, 400}, stored);
  ASSERT_TRUE(decoded);
  EXPECT_EQ(*decoded, joined({Bytes(100, 0), Bytes(100, 7), noise, text}));
}

TEST(Streams, RunsOfEveryValue) {
  for (int value = 1; value <= 255; ++value) {
    EXPECT_EQ(*decode({1, 9}, joined({field(-value), {0x01}})), Bytes(9, static_cast<std::uint8_t>(value)));
  }
  // Only the lowest bit of the token marks a run.
  EXPECT_TRUE(decode({1, 9}, joined({field(-1), {0xff}})));
  EXPECT_EQ(error_of({1, 9}, joined({field(-1), {0xfe}})), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 9}, joined({field(-1), {0x00}})), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 9}, field(-1)), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 9}, joined({field(-256), {0x01}})), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 9}, joined({field(INT32_MIN), {0x01}})), ErrorKind::corruption);
}

TEST(Streams, NoRunsWithAShortHeader) {
  EXPECT_EQ(error_of({1, 9, false}, field(0)), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 9, false}, joined({field(-1), {0x01}})), ErrorKind::corruption);
}

TEST(Streams, LengthsThatDoNotFit) {
  EXPECT_EQ(error_of({1, 8}, {}), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 8}, {1, 0, 0}), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 8}, joined({field(8), Bytes(7)})), ErrorKind::corruption);
  EXPECT_EQ(error_of({1, 8}, joined({field(INT32_MAX), Bytes(20)})), ErrorKind::corruption);
  EXPECT_EQ(error_of({2, 16}, joined({field(8), Bytes(8)})), ErrorKind::corruption);
  // Streams that cannot share the block.
  EXPECT_EQ(error_of({3, 8}, joined({field(0), field(0), field(0)})), ErrorKind::corruption);
  EXPECT_EQ(error_of({9, 8}, Bytes(36)), ErrorKind::corruption);
}

TEST(Streams, KnowsABlockOfZeros) {
  BlockStreams streams;
  ASSERT_TRUE(streams.parse(joined({field(0), field(0)}), 2, 64, true, {CodecFormat::lz4}));
  EXPECT_TRUE(streams.all_zeros());
  ASSERT_TRUE(streams.parse(joined({field(0), field(-1), {0x01}}), 2, 64, true, {CodecFormat::lz4}));
  EXPECT_FALSE(streams.all_zeros());
  ASSERT_TRUE(streams.parse(joined({field(0), field(32), Bytes(32)}), 2, 64, true, {CodecFormat::lz4}));
  EXPECT_FALSE(streams.all_zeros());
}

TEST(Streams, VariableLengthBlocks) {
  const Bytes noise = random_bytes(50, 2);
  BlockStreams streams;
  DecodeContext context;
  Bytes out(50);
  const Bytes raw = joined({field(50), noise});  // must outlive the streams, which point into it
  ASSERT_TRUE(streams.parse_vl(raw, 50, {CodecFormat::zstd}));
  ASSERT_TRUE(streams.decode(context.states(), {CodecFormat::zstd}, out));
  EXPECT_EQ(out, noise);

  const Bytes text(5000, 'y');
  out.resize(5000);
  const Bytes packed = joined({field(5000), compress(CodecFormat::zstd, {}, text)});
  ASSERT_TRUE(streams.parse_vl(packed, 5000, {CodecFormat::zstd}));
  ASSERT_TRUE(streams.decode(context.states(), {CodecFormat::zstd}, out));
  EXPECT_EQ(out, text);

  EXPECT_FALSE(streams.parse_vl(field(50), 50, {CodecFormat::zstd}));
}

TEST(Streams, AStreamTooShortForItsBlockIsRefusedBeforeDecoding) {
  const auto parses = [](CodecFormat format, std::int32_t stored, std::uint32_t plain) {
    BlockStreams streams;
    return streams.parse(joined({field(stored), Bytes(static_cast<std::size_t>(stored))}), 1, plain, true, {format})
        .has_value();
  };
  constexpr std::uint32_t kHuge = 500u << 20;
  for (const CodecFormat format : {CodecFormat::blosclz, CodecFormat::lz4, CodecFormat::snappy}) {
    EXPECT_TRUE(parses(format, 100, 25500));
    EXPECT_FALSE(parses(format, 100, 25501));
    EXPECT_FALSE(parses(format, 1000, kHuge));
  }
  EXPECT_TRUE(parses(CodecFormat::zlib, 100, 103200));
  EXPECT_FALSE(parses(CodecFormat::zlib, 1000, kHuge));
  EXPECT_TRUE(parses(CodecFormat::zstd, 100, 3 << 20));
  EXPECT_FALSE(parses(CodecFormat::zstd, 1000, kHuge));
}

class EveryCodec : public testing::TestWithParam<CodecFormat> {
 protected:
  const Bytes plain_ = mixed_bytes(20000, 3);
  const Bytes packed_ = compress(GetParam(), {}, plain_);

  bool decodes(const Bytes& stream, std::size_t size) {
    DecodeContext context;
    Bytes out(size);
    const auto decoded = codec::decode_stream(context.states(), {GetParam()}, stream, out);
    if (!decoded) {
      EXPECT_EQ(decoded.error().kind, ErrorKind::corruption);
    }
    return decoded && (size != plain_.size() || out == plain_);
  }
};

TEST_P(EveryCodec, GivesExactlyTheBytesAskedFor) {
  EXPECT_TRUE(decodes(packed_, plain_.size()));
  EXPECT_FALSE(decodes(packed_, plain_.size() - 1));
  EXPECT_FALSE(decodes(packed_, plain_.size() + 1));
  EXPECT_FALSE(decodes(packed_, 1));
}

TEST_P(EveryCodec, RefusesTruncatedStreams) {
  for (std::size_t size = 0; size < packed_.size(); size += 1 + size / 50) {
    EXPECT_FALSE(decodes(Bytes(packed_.begin(), packed_.begin() + static_cast<std::ptrdiff_t>(size)), plain_.size()))
        << size;
  }
  EXPECT_FALSE(decodes(Bytes(packed_.begin(), packed_.end() - 1), plain_.size()));
}

TEST_P(EveryCodec, SurvivesFlippedBits) {
  // Codecs without a checksum may not detect damage, but must not access memory outside the buffers.
  DecodeContext context;
  std::mt19937 random(4);
  for (int round = 0; round < 2000; ++round) {
    Bytes damaged = packed_;
    for (unsigned i = 0; i <= random() % 3; ++i)
      damaged[random() % damaged.size()] ^= static_cast<std::uint8_t>(1u << random() % 8);
    Bytes out(plain_.size());
    (void)codec::decode_stream(context.states(), {GetParam()}, damaged, out);
  }
  // The states still decode the next stream.
  Bytes out(plain_.size());
  EXPECT_TRUE(codec::decode_stream(context.states(), {GetParam()}, packed_, out));
  EXPECT_EQ(out, plain_);
}

std::string codec_name(const testing::TestParamInfo<CodecFormat>& row) {
  constexpr const char* kNames[] = {"blosclz", "lz4", "snappy", "zlib", "zstd"};
  return kNames[static_cast<std::size_t>(row.param)];
}

INSTANTIATE_TEST_SUITE_P(Codecs, EveryCodec,
                         testing::Values(CodecFormat::blosclz, CodecFormat::lz4, CodecFormat::snappy, CodecFormat::zlib,
                                         CodecFormat::zstd),
                         codec_name);

TEST(Streams, ZstdAcceptsExactlyOneFrameOfTheCurrentFormat) {
  DecodeContext context;
  const auto decodes = [&](const Bytes& stream, std::size_t size) {
    Bytes out(size);
    return codec::decode_stream(context.states(), {CodecFormat::zstd}, stream, out).has_value();
  };
  const Bytes frame = compress(CodecFormat::zstd, {}, Bytes(1000, 'z'));
  EXPECT_TRUE(decodes(frame, 1000));
  EXPECT_FALSE(decodes(joined({frame, frame}), 2000));
  EXPECT_FALSE(decodes(joined({frame, {0}}), 1000));
  EXPECT_FALSE(decodes(joined({{0x50, 0x2a, 0x4d, 0x18, 0, 0, 0, 0}, frame}), 1000));
  EXPECT_FALSE(decodes({}, 1000));
}

TEST(Streams, CodecsThatThisBuildLacksAreNamed) {
  for (const CodecFormat format : {CodecFormat::reserved, CodecFormat::registered, CodecFormat::superchunk}) {
    EXPECT_EQ(error_of({1, 8, true, format}, joined({field(3), Bytes(3)})), ErrorKind::unsupported);
    // Raw streams do not need the codec.
    EXPECT_TRUE(decode({1, 8, true, format}, field(0)));
    EXPECT_TRUE(decode({1, 8, true, format}, joined({field(8), Bytes(8)})));
  }
  DecodeContext context;
  Bytes out(8);
  const auto zfp = codec::decode_stream(context.states(), {CodecFormat::registered, 33}, Bytes(3), out);
  EXPECT_NE(zfp.error().reason.find("zfp"), std::string::npos);
  const auto ndlz = codec::decode_stream(context.states(), {CodecFormat::registered, 32}, Bytes(3), out);
  EXPECT_NE(ndlz.error().reason.find("ndlz"), std::string::npos);
}

}  // namespace
}  // namespace cframefs
