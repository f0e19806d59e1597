// What each row of the codec table promises: names, round trips at every level and with dictionaries, the bound on
// expansion, and the refusal of codecs that cannot be written or decoded. A new row is tested without a change here.
#include "codec/stream/codec_table.h"

#include <algorithm>
#include <set>

#include <gtest/gtest.h>

#include "codec/chunk_decoder.h"
#include "codec/chunk_encoder.h"
#include "codec/stream/block_sizes.h"
#include "codec/stream/stream_decoders.h"
#include "codec/stream/stream_encoders.h"
#include "tests/codec/test_bytes.h"

namespace cframefs {
namespace {

using codec::codec_table;
using codec::CodecFormat;
using codec::CodecInfo;
using codec::EncodeParameters;
using codec::ErrorKind;

bool is_writable(const CodecInfo& codec) {
  return codec.encode != nullptr;
}

TEST(CodecTable, IdsAndNamesAreUnique) {
  std::set<std::uint8_t> ids;
  std::set<std::string_view> names;
  for (const CodecInfo& codec : codec_table()) {
    EXPECT_TRUE(ids.insert(codec.id).second) << int{codec.id};
    EXPECT_TRUE(names.insert(codec.name).second) << codec.name;
    EXPECT_FALSE(codec.name.empty());
    EXPECT_EQ(codec::codec_info(codec.id), &codec);
    EXPECT_EQ(codec::codec_name(codec.id), codec.name);
    EXPECT_EQ(codec::stream_codec_info(codec.format, codec.id), &codec);
    // Ids below 32 are those of codecs with formats of their own.
    EXPECT_EQ(codec.format == CodecFormat::registered, codec.id >= 32) << codec.name;
  }
  EXPECT_EQ(codec::codec_info(170), nullptr);
  EXPECT_EQ(codec::codec_name(170), "codec 170");
}

TEST(CodecTable, NamesOfWritableCodecs) {
  for (const CodecInfo& codec : codec_table()) {
    const auto found = codec::find_codec(codec.name);
    ASSERT_EQ(found.has_value(), is_writable(codec)) << codec.name;
    if (found) {
      EXPECT_EQ(*found, codec.id);
    }
  }
  for (const char* name : {"", "ZSTD", "zstd ", "codec 5"})
    EXPECT_FALSE(codec::find_codec(name)) << name;
  EXPECT_EQ(codec::find_codec("x").error().reason, "must be one of blosclz, lz4, lz4hc, zlib, zstd");
  EXPECT_EQ(codec::writable_codec_names(" or "), "blosclz, lz4, lz4hc, zlib or zstd");
}

TEST(CodecTable, CodecsThatShareAFormatShareTheDecoder) {
  for (const CodecInfo& codec : codec_table()) {
    if (codec.format == CodecFormat::registered) continue;
    // Chunks with a 16-byte header do not say which codec it was.
    const CodecInfo* const first = codec::stream_codec_info(codec.format, 200);
    ASSERT_NE(first, nullptr) << codec.name;
    EXPECT_EQ(first->decode, codec.decode) << codec.name;
    EXPECT_EQ(first->expansion_limit, codec.expansion_limit) << codec.name;
    EXPECT_EQ(first->decoder_dictionary, codec.decoder_dictionary) << codec.name;
  }
  for (const CodecFormat format : {CodecFormat::reserved, CodecFormat::registered, CodecFormat::superchunk})
    EXPECT_EQ(codec::stream_codec_info(format, 0), nullptr);
}

TEST(CodecTable, WhatIsWrittenCanBeRead) {
  for (const CodecInfo& codec : codec_table()) {
    if (!is_writable(codec)) {
      EXPECT_EQ(codec.encoder_dictionary, nullptr) << codec.name;
      EXPECT_EQ(codec.tuned_levels[0], 0) << codec.name;
      continue;
    }
    EXPECT_NE(codec.decode, nullptr) << codec.name;
    EXPECT_EQ(codec.encoder_dictionary != nullptr, codec.decoder_dictionary != nullptr) << codec.name;
    if (codec.train_dictionary != nullptr) {
      EXPECT_NE(codec.encoder_dictionary, nullptr) << codec.name;
    }
    const auto levels = std::span(codec.levels).subspan(1);
    EXPECT_TRUE(std::is_sorted(levels.begin(), levels.end()) || std::is_sorted(levels.rbegin(), levels.rend()))
        << codec.name;
  }
}

// ---- every codec that can be written ------------------------------------------------------------------------------

class WritableCodec : public testing::TestWithParam<const CodecInfo*> {
 protected:
  const CodecInfo& codec_ = *GetParam();
  codec::EncodeContext encode_context_;
  codec::DecodeContext decode_context_;

  EncodeParameters parameters(int clevel) const {
    EncodeParameters parameters;
    parameters.compcode = codec_.id;
    parameters.clevel = clevel;
    return parameters;
  }

  // Returns the stream's length, 0 if `plain` does not shrink; a stream must decode to `plain`.
  std::size_t stream_round_trip(int clevel, const Bytes& plain, codec::ByteView dictionary) {
    codec::StreamEncoder encoder{codec_.id, clevel, nullptr};
    codec::StreamCodec decoder{codec_.format, codec_.id, nullptr};
    std::shared_ptr<const codec::Dictionary> encoding;
    std::shared_ptr<const codec::Dictionary> decoding;
    if (!dictionary.empty()) {
      encoding = codec_.encoder_dictionary(codec_.levels[static_cast<std::size_t>(clevel)], dictionary).value();
      decoding = codec_.decoder_dictionary(dictionary).value();
      encoder.dictionary = encoding.get();
      decoder.dictionary = decoding.get();
    }
    Bytes stream(plain.size() - 1);
    const auto length = codec::encode_stream(encode_context_.states(), encoder, plain, stream);
    EXPECT_TRUE(length) << length.error().reason;
    if (!length || *length == 0) return 0;
    EXPECT_LE(*length, stream.size());
    Bytes decoded(plain.size());
    const auto done =
        codec::decode_stream(decode_context_.states(), decoder, codec::ByteView(stream).first(*length), decoded);
    EXPECT_TRUE(done) << done.error().reason;
    EXPECT_EQ(decoded, plain);
    return *length;
  }

  // Returns the chunk's header.
  codec::ChunkHeader chunk_round_trip(const EncodeParameters& parameters, const Bytes& plain) {
    const auto chunk = codec::encode_chunk(encode_context_, parameters, plain);
    EXPECT_TRUE(chunk) << chunk.error().reason;
    const auto decoder = codec::ChunkDecoder::parse(chunk->bytes);
    EXPECT_TRUE(decoder) << decoder.error().reason;
    Bytes decoded(plain.size());
    EXPECT_TRUE(codec::decode_range(decode_context_, *decoder, chunk->bytes, 0, decoded));
    EXPECT_EQ(decoded, plain);
    return decoder->header();
  }
};

Bytes lines() {
  Bytes plain;
  for (std::uint32_t line = 0; plain.size() < 100'000; ++line) {
    const std::string text = "station " + std::to_string(line * 7919 % 1000) + " reports " + std::to_string(line % 37);
    plain.insert(plain.end(), text.begin(), text.end());
  }
  return plain;
}

TEST_P(WritableCodec, RoundTripAtEveryLevel) {
  const Bytes plain = lines();
  for (int clevel = 1; clevel <= codec::kMaxLevel; ++clevel) {
    EXPECT_GT(stream_round_trip(clevel, plain, {}), 0U) << clevel;
    stream_round_trip(clevel, mixed_bytes(20'000, 3), {});
  }
  for (int clevel = 0; clevel <= codec::kMaxLevel; ++clevel) {
    const codec::ChunkHeader header = chunk_round_trip(parameters(clevel), plain);
    EXPECT_EQ(header.memcpyed, clevel == 0) << clevel;
    EXPECT_EQ(header.compcode, codec_.id);
    if (clevel > 0) {
      EXPECT_EQ(header.format, codec_.format) << clevel;
    }
  }
}

TEST_P(WritableCodec, DictionariesIfTheRowHasThem) {
  const Bytes plain = lines();
  const codec::ByteView dictionary = codec::ByteView(plain).first(4000);
  const Bytes part(plain.begin() + 500, plain.begin() + 1500);
  for (int clevel = 1; clevel <= codec::kMaxLevel; ++clevel) {
    if (codec_.encoder_dictionary != nullptr) {
      const std::size_t with = stream_round_trip(clevel, part, dictionary);
      EXPECT_GT(with, 0U) << clevel;
      EXPECT_LT(with, stream_round_trip(clevel, part, {})) << clevel;
    }
    EncodeParameters with_dictionary = parameters(clevel);
    with_dictionary.use_dict = true;
    with_dictionary.blocksize = 1000;
    const codec::ChunkHeader header = chunk_round_trip(with_dictionary, plain);
    if (!header.memcpyed) {
      EXPECT_EQ(header.dictionary, codec_.encoder_dictionary != nullptr) << clevel;
    }
  }
}

TEST_P(WritableCodec, IncompressibleBytesDoNotGrow) {
  for (const std::size_t size : {33U, 1000U, 100'000U}) {
    const Bytes noise = random_bytes(size, 5);
    for (int clevel = 1; clevel <= codec::kMaxLevel; ++clevel) {
      stream_round_trip(clevel, noise, {});
      const auto chunk = codec::encode_chunk(encode_context_, parameters(clevel), noise);
      ASSERT_TRUE(chunk);
      EXPECT_LE(chunk->bytes.size(), size + codec::kExtendedHeaderLength) << clevel;
    }
  }
}

TEST_P(WritableCodec, NoStreamExpandsBeyondTheLimit) {
  ASSERT_NE(codec_.expansion_limit, nullptr);
  for (const std::size_t size : {std::size_t{1000}, std::size_t{100'000}, std::size_t{4} << 20}) {
    for (const std::size_t period : {1U, 2U, 3U, 256U}) {
      Bytes plain(size);
      for (std::size_t i = 0; i < size; ++i)
        plain[i] = static_cast<std::uint8_t>(i % period);
      for (const int clevel : {1, 5, codec::kMaxLevel}) {
        const std::size_t length = stream_round_trip(clevel, plain, {});
        ASSERT_GT(length, 0U);
        EXPECT_LE(size, codec_.expansion_limit(length)) << "period " << period << " clevel " << clevel;
      }
    }
  }
}

TEST_P(WritableCodec, SplitsAsTheRowSays) {
  for (int clevel = 1; clevel <= codec::kMaxLevel; ++clevel) {
    EncodeParameters shuffled = parameters(clevel);
    shuffled.typesize = 4;
    shuffled.filters[5] = static_cast<std::uint8_t>(codec::FilterId::shuffle);
    const bool expected =
        codec_.split == codec::SplitRule::always || (codec_.split == codec::SplitRule::to_level_5 && clevel <= 5);
    EXPECT_EQ(codec::choose_split(shuffled, 64 << 10), expected) << clevel;
    const int factor = codec::choose_blocksize(parameters(clevel), 64 << 20) / (32 << 10);
    // Levels 1 to 9 (codecs.md section 5), doubled for 1 to 8 by long blocks; at 9 twice the factor, too.
    constexpr std::array<double, 10> kFactors{0.25, 0.5, 1, 2, 4, 4, 8, 8, 8, 8};
    const double wanted =
        kFactors[static_cast<std::size_t>(clevel)] * (codec_.long_blocks ? (clevel == codec::kMaxLevel ? 4 : 2) : 1);
    EXPECT_EQ(factor, static_cast<int>(wanted)) << clevel;
  }
}

std::vector<const CodecInfo*> writable_codecs() {
  std::vector<const CodecInfo*> codecs;
  for (const CodecInfo& codec : codec_table()) {
    if (is_writable(codec)) codecs.push_back(&codec);
  }
  return codecs;
}

std::string row_name(const testing::TestParamInfo<const CodecInfo*>& row) {
  return std::string(row.param->name);
}

INSTANTIATE_TEST_SUITE_P(Rows, WritableCodec, testing::ValuesIn(writable_codecs()), row_name);

// ---- codecs that this build cannot write or decode ----------------------------------------------------------------

TEST(CodecTable, ReadOnlyCodecsAreRefusedByTheEncoder) {
  codec::EncodeContext context;
  const auto expect_refused = [&](std::uint8_t compcode, const std::string& name) {
    EncodeParameters parameters;
    parameters.compcode = compcode;
    Bytes out(100);
    const codec::StreamEncoder encoder{compcode, 5, nullptr};
    const auto stream = codec::encode_stream(context.states(), encoder, Bytes(200, 1), out);
    const auto chunk = codec::encode_chunk(context, parameters, Bytes(200, 1));
    const auto checked = codec::check_encodable(parameters);
    ASSERT_FALSE(stream || chunk || checked) << name;
    for (const codec::Error& error : {stream.error(), chunk.error(), checked.error()}) {
      EXPECT_EQ(error.kind, ErrorKind::unsupported);
      EXPECT_EQ(error.reason, "codec " + std::to_string(compcode) + " (" + name +
                                  ") cannot be written; codecs that can: " + codec::writable_codec_names());
    }
  };
  for (const CodecInfo& codec : codec_table()) {
    if (!is_writable(codec)) expect_refused(codec.id, std::string(codec.name));
  }
  expect_refused(6, "unknown");
  expect_refused(255, "unknown");
}

TEST(CodecTable, CodecsWithoutDecoderAreRefusedByName) {
  codec::DecodeContext context;
  Bytes out(100);
  for (const CodecInfo& codec : codec_table()) {
    const auto done = codec::decode_stream(context.states(), {codec.format, codec.id}, Bytes(3), out);
    ASSERT_FALSE(done) << codec.name;
    if (codec.decode != nullptr) continue;
    EXPECT_EQ(done.error().kind, ErrorKind::unsupported);
    EXPECT_EQ(done.error().reason, "codec " + std::to_string(codec.id) + " (" + std::string(codec.name) + ")");
  }
}

}  // namespace
}  // namespace cframefs
