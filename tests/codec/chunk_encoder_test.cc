// Chunks of our encoder, decoded by our decoder, and their headers. Decoding by the reference library is tested outside
// this tree.
#include "codec/chunk_encoder.h"

#include <string>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codec/chunk_decoder.h"
#include "codec/stream/block_sizes.h"
#include "tests/codec/test_bytes.h"

namespace cframefs {
namespace {

using codec::EncodedChunk;
using codec::EncodeParameters;
using codec::FilterId;
using codec::SpecialValue;

constexpr std::uint8_t kBlosclz = 0;
constexpr std::uint8_t kLz4hc = 2;
constexpr std::uint8_t kZlib = 4;
constexpr std::array<std::uint8_t, 5> kCodecs{kBlosclz, codec::kLz4, kLz4hc, kZlib, codec::kZstd};

using Filters = std::array<std::uint8_t, codec::kFilterSlots>;

constexpr std::uint8_t id(FilterId filter) {
  return static_cast<std::uint8_t>(filter);
}

// Common pipelines, and some unusual ones.
const std::vector<Filters>& pipelines() {
  static const std::vector<Filters> all{
      {},
      {0, 0, 0, 0, 0, id(FilterId::shuffle)},
      {0, 0, 0, 0, 0, id(FilterId::bitshuffle)},
      {0, 0, 0, 0, 0, id(FilterId::delta)},
      {0, 0, 0, 0, id(FilterId::shuffle), id(FilterId::bytedelta)},
      {id(FilterId::delta), 0, 0, 0, 0, id(FilterId::shuffle)},
      {0, 0, 0, 0, id(FilterId::delta), id(FilterId::bitshuffle)},
      {0, 0, 0, 0, id(FilterId::shuffle), id(FilterId::delta)},
      {id(FilterId::delta), 0, 0, 0, id(FilterId::shuffle), id(FilterId::bytedelta)},
      {0, 0, 0, id(FilterId::bytedelta), id(FilterId::bitshuffle), id(FilterId::shuffle)},
  };
  return all;
}

EncodedChunk encode(const EncodeParameters& parameters, const Bytes& plain) {
  static codec::EncodeContext context;
  codec::Result<EncodedChunk> chunk = codec::encode_chunk(context, parameters, plain);
  EXPECT_TRUE(chunk) << chunk.error().reason;
  if (!chunk) return {};
  // The previous content of the memory must not affect the result.
  static EncodedChunk again;
  EXPECT_TRUE(codec::encode_into(context, parameters, plain, again));
  EXPECT_EQ(again.special, chunk->special);
  EXPECT_EQ(again.nbytes, chunk->nbytes);
  EXPECT_EQ(again.bytes, chunk->bytes);
  return *std::move(chunk);
}

Bytes decode_special(const EncodeParameters& parameters, const EncodedChunk& chunk) {
  const auto decoder = codec::ChunkDecoder::special(chunk.special, chunk.nbytes, parameters.typesize);
  EXPECT_TRUE(decoder);
  Bytes plain;
  codec::DecodeContext context;
  for (std::uint32_t block = 0; block < decoder->block_count(); ++block) {
    Bytes part(decoder->block_range(block).size());
    EXPECT_TRUE(decoder->decode_block(context, block, {}, part));
    plain += part;
  }
  return plain;
}

Bytes decode(const EncodeParameters& parameters, const EncodedChunk& chunk) {
  if (chunk.special != SpecialValue::none) return decode_special(parameters, chunk);
  codec::DecodeParams environment;
  environment.frame_typesize = parameters.typesize;
  const auto decoder = codec::ChunkDecoder::parse(chunk.bytes, environment);
  if (!decoder) {
    ADD_FAILURE() << decoder.error().reason;
    return {};
  }
  Bytes plain(decoder->nbytes(), 0xa5);
  codec::DecodeContext context;
  const auto decoded = codec::decode_range(context, *decoder, chunk.bytes, 0, plain);
  EXPECT_TRUE(decoded) << decoded.error().reason;
  return plain;
}

std::string name_of(const EncodeParameters& parameters, std::size_t size) {
  std::string text = "codec " + std::to_string(parameters.compcode) + ", clevel " + std::to_string(parameters.clevel) +
                     ", typesize " + std::to_string(parameters.typesize) + ", blocksize " +
                     std::to_string(parameters.blocksize) + ", split " + std::to_string(parameters.split_mode) +
                     ", dictionary " + std::to_string(parameters.use_dict) + ", " + std::to_string(size) +
                     " bytes, filters";
  for (const std::uint8_t filter : parameters.filters)
    text += " " + std::to_string(filter);
  return text;
}

codec::ChunkHeader header_of(const EncodedChunk& chunk) {
  const auto header = codec::parse_chunk_header(chunk.bytes);
  EXPECT_TRUE(header) << header.error().reason;
  return header ? *header : codec::ChunkHeader();
}

// Checks the properties of every chunk.
void expect_sound(const EncodeParameters& parameters, const EncodedChunk& chunk, const Bytes& plain) {
  SCOPED_TRACE(name_of(parameters, plain.size()));
  ASSERT_EQ(static_cast<std::size_t>(chunk.nbytes), plain.size());
  if (chunk.special == SpecialValue::none) {
    const codec::ChunkHeader header = header_of(chunk);
    ASSERT_EQ(header.version, 5);
    ASSERT_EQ(header.length, 32u);
    ASSERT_EQ(static_cast<std::size_t>(header.cbytes), chunk.bytes.size());
    ASSERT_EQ(static_cast<std::size_t>(header.nbytes), plain.size());
    ASSERT_EQ(header.typesize, parameters.typesize <= 255 ? parameters.typesize : 1);
    ASSERT_EQ(header.special, SpecialValue::none);
    ASSERT_LE(header.blocksize, std::max(header.nbytes, 1));
    if (header.nbytes > parameters.typesize) {
      ASSERT_EQ(header.blocksize % parameters.typesize, 0);
    }
    ASSERT_LE(chunk.bytes.size(), plain.size() + 32);
    if (!header.memcpyed) {
      ASSERT_LT(chunk.bytes.size(), plain.size() + 32);
    }
    if (header.dictionary) {
      ASSERT_TRUE(header.dont_split);
    }
  } else {
    ASSERT_TRUE(chunk.bytes.empty());
  }
  ASSERT_EQ(decode(parameters, chunk), plain);
}

void round_trip(const EncodeParameters& parameters, const Bytes& plain) {
  expect_sound(parameters, encode(parameters, plain), plain);
}

Bytes counters(std::size_t size, std::size_t width) {
  Bytes bytes(size);
  for (std::size_t i = 0; i < size; ++i)
    bytes[i] = static_cast<std::uint8_t>(i / width >> 8 * std::min<std::size_t>(i % width, 3));
  return bytes;
}

Bytes repeated(const Bytes& item, std::size_t times) {
  Bytes bytes;
  for (std::size_t i = 0; i < times; ++i)
    bytes += item;
  return bytes;
}

EncodeParameters shuffled(std::uint8_t compcode, std::int32_t typesize) {
  EncodeParameters parameters;
  parameters.compcode = compcode;
  parameters.typesize = typesize;
  parameters.filters[5] = id(FilterId::shuffle);
  return parameters;
}

TEST(ChunkEncoder, EveryCodecFilterTypesizeAndLength) {
  for (const std::uint8_t compcode : kCodecs) {
    for (const Filters& filters : pipelines()) {
      for (const std::int32_t typesize : {1, 2, 3, 4, 7, 8, 16, 255, 300}) {
        EncodeParameters parameters;
        parameters.compcode = compcode;
        parameters.clevel = 1 + typesize % 9;
        parameters.filters = filters;
        parameters.typesize = typesize;
        parameters.blocksize = 4 * typesize * (1 + 600 / typesize);
        const auto blocksize = static_cast<std::size_t>(parameters.blocksize);
        for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{31}, std::size_t{32},
                                       std::size_t{33}, blocksize - 1, blocksize, blocksize + 1, 3 * blocksize + 17}) {
          ASSERT_NO_FATAL_FAILURE(round_trip(parameters, mixed_bytes(size, 1)));
          ASSERT_NO_FATAL_FAILURE(round_trip(parameters, counters(size, static_cast<std::size_t>(typesize))));
        }
      }
    }
  }
}

TEST(ChunkEncoder, EveryLevelAndSplitMode) {
  for (const std::uint8_t compcode : kCodecs) {
    for (int clevel = 0; clevel <= 9; ++clevel) {
      for (std::uint8_t split_mode = 0; split_mode <= 4; ++split_mode) {
        EncodeParameters parameters = shuffled(compcode, 4);
        parameters.clevel = clevel;
        parameters.split_mode = split_mode;
        ASSERT_NO_FATAL_FAILURE(round_trip(parameters, counters(100'003, 4)));
        ASSERT_NO_FATAL_FAILURE(round_trip(parameters, mixed_bytes(70'000, 2)));
      }
    }
  }
}

RC_GTEST_PROP(ChunkEncoderProperty, RoundTrip, (std::uint32_t seed)) {
  EncodeParameters parameters;
  parameters.compcode = kCodecs[*rc::gen::inRange<std::size_t>(0, kCodecs.size())];
  parameters.clevel = *rc::gen::inRange(0, 9);
  parameters.filters = pipelines()[*rc::gen::inRange<std::size_t>(0, pipelines().size())];
  parameters.typesize = *rc::gen::inRange(1, 320);
  parameters.filters_meta[5] = *rc::gen::inRange<std::uint8_t>(0, 20);
  parameters.blocksize = *rc::gen::inRange(0, 9000);
  parameters.split_mode = *rc::gen::inRange<std::uint8_t>(0, 5);
  parameters.use_dict = *rc::gen::arbitrary<bool>();
  const auto size = *rc::gen::inRange<std::size_t>(0, 60'000);
  const Bytes plain = *rc::gen::arbitrary<bool>() ? mixed_bytes(size, seed)
                                                  : counters(size, static_cast<std::size_t>(parameters.typesize));
  round_trip(parameters, plain);
  RC_ASSERT(!testing::Test::HasFailure());
}

TEST(ChunkEncoder, ZerosAreSpecial) {
  const EncodedChunk chunk = encode(shuffled(codec::kZstd, 4), Bytes(4000));
  EXPECT_EQ(chunk.special, SpecialValue::zeros);
  EXPECT_TRUE(chunk.bytes.empty());
  EXPECT_EQ(chunk.nbytes, 4000);
  Bytes nearly(4000);
  nearly.back() = 1;
  EXPECT_EQ(encode(shuffled(codec::kZstd, 4), nearly).special, SpecialValue::none);
}

TEST(ChunkEncoder, ZerosThatAreNotWholeItemsAreRuns) {
  // Releases of C-Blosc2 before 3.0 cannot read special chunks of partial items.
  const Bytes plain(4001);
  const EncodedChunk chunk = encode(shuffled(codec::kZstd, 4), plain);
  expect_sound(shuffled(codec::kZstd, 4), chunk, plain);
  EXPECT_EQ(chunk.special, SpecialValue::none);
  EXPECT_GT(chunk.bytes.size(), 32u);
  EXPECT_LT(chunk.bytes.size(), 100u);
}

TEST(ChunkEncoder, QuietNansAreSpecial) {
  const Bytes single{0x00, 0x00, 0xc0, 0x7f};
  const Bytes twice{0, 0, 0, 0, 0, 0, 0xf8, 0x7f};
  EXPECT_EQ(encode(shuffled(codec::kLz4, 4), repeated(single, 100)).special, SpecialValue::nan);
  EXPECT_EQ(encode(shuffled(codec::kLz4, 8), repeated(twice, 100)).special, SpecialValue::nan);
  // NaNs of another type, another payload, another sign, and only some items.
  EXPECT_EQ(encode(shuffled(codec::kLz4, 8), repeated(single, 100)).special, SpecialValue::none);
  EXPECT_EQ(encode(shuffled(codec::kLz4, 2), repeated(single, 100)).special, SpecialValue::none);
  EXPECT_EQ(encode(shuffled(codec::kLz4, 4), repeated({0x01, 0x00, 0xc0, 0x7f}, 100)).special, SpecialValue::none);
  EXPECT_EQ(encode(shuffled(codec::kLz4, 4), repeated({0x00, 0x00, 0xc0, 0xff}, 100)).special, SpecialValue::none);
  Bytes nearly = repeated(single, 100);
  nearly[200] = 1;
  round_trip(shuffled(codec::kLz4, 4), nearly);
  EXPECT_EQ(encode(shuffled(codec::kLz4, 4), nearly).special, SpecialValue::none);
}

TEST(ChunkEncoder, ARepeatedItemIsRuns) {
  const Bytes item{1, 2, 0, 255};
  const Bytes plain = repeated(item, 5000);
  const EncodedChunk chunk = encode(shuffled(codec::kLz4, 4), plain);
  expect_sound(shuffled(codec::kLz4, 4), chunk, plain);
  EXPECT_EQ(chunk.special, SpecialValue::none);
  // Header, one block start, and four streams, of which three have a value and a token.
  EXPECT_EQ(chunk.bytes.size(), 32u + 4 + 3 * 5 + 4);
}

TEST(ChunkEncoder, NoiseIsStoredUncompressed) {
  for (const std::uint8_t compcode : kCodecs) {
    const Bytes plain = random_bytes(100'000, 3);
    const EncodedChunk chunk = encode(shuffled(compcode, 4), plain);
    expect_sound(shuffled(compcode, 4), chunk, plain);
    EXPECT_TRUE(header_of(chunk).memcpyed);
  }
}

TEST(ChunkEncoder, NoiseAmongCompressibleBytes) {
  for (const std::uint8_t compcode : kCodecs) {
    for (const Filters& filters : {pipelines()[0], pipelines()[1]}) {
      EncodeParameters parameters;
      parameters.compcode = compcode;
      parameters.filters = filters;
      parameters.typesize = 4;
      parameters.blocksize = 4096;
      const Bytes noise = random_bytes(40'000, 7);
      const Bytes tame = counters(20'000, 400);
      Bytes plain = noise;
      plain += tame;
      round_trip(parameters, plain);
      plain += noise;
      round_trip(parameters, plain);
      round_trip(parameters, Bytes(plain.begin() + 40'000, plain.end()));
    }
  }
}

TEST(ChunkEncoder, LevelZeroAndShortChunksAreStoredUncompressed) {
  EncodeParameters parameters = shuffled(kBlosclz, 4);
  EXPECT_TRUE(header_of(encode(parameters, counters(31, 4))).memcpyed);
  parameters.clevel = 0;
  EXPECT_TRUE(header_of(encode(parameters, counters(100'000, 4))).memcpyed);
  EXPECT_EQ(encode(parameters, {}).bytes.size(), 32u);
}

TEST(ChunkEncoder, SplitsAsTheRuleSays) {
  const auto split = [](std::uint8_t compcode, int clevel, std::int32_t typesize, std::uint8_t mode) {
    EncodeParameters parameters = shuffled(compcode, typesize);
    parameters.clevel = clevel;
    parameters.split_mode = mode;
    const EncodedChunk chunk = encode(parameters, counters(96'000, static_cast<std::size_t>(typesize)));
    return !header_of(chunk).dont_split;
  };
  EXPECT_TRUE(split(kBlosclz, 9, 4, 4));
  EXPECT_TRUE(split(codec::kLz4, 5, 8, 0));
  EXPECT_TRUE(split(codec::kZstd, 5, 8, 3));
  EXPECT_FALSE(split(codec::kZstd, 6, 8, 3));
  EXPECT_FALSE(split(kZlib, 5, 8, 3));
  EXPECT_TRUE(split(kZlib, 5, 8, 1));
  EXPECT_FALSE(split(codec::kLz4, 5, 8, 2));
  EXPECT_FALSE(split(codec::kLz4, 5, 24, 4));
  EXPECT_TRUE(split(codec::kLz4, 5, 24, 1));
}

TEST(ChunkEncoder, BytedeltaIsOmittedForPartialItems) {
  EncodeParameters parameters = shuffled(codec::kZstd, 4);
  parameters.filters = {0, 0, 0, 0, id(FilterId::shuffle), id(FilterId::bytedelta)};
  codec::ChunkHeader header = header_of(encode(parameters, counters(40'000, 4)));
  EXPECT_EQ(header.filters, parameters.filters);
  // The chunk records the number of planes, so that it decodes without its frame.
  EXPECT_EQ(header.filters_meta[5], 4);
  header = header_of(encode(parameters, counters(40'001, 4)));
  EXPECT_EQ(header.filters[4], id(FilterId::shuffle));
  EXPECT_EQ(header.filters[5], 0);
}

TEST(ChunkEncoder, Dictionaries) {
  // Short text-like blocks, which compress better with the content of the others.
  Bytes plain;
  for (std::uint32_t line = 0; plain.size() < 200'000; ++line) {
    const std::string text =
        "station " + std::to_string(line * 7919 % 1000) + " reports temperature " + std::to_string(line % 37) + "\n";
    plain.insert(plain.end(), text.begin(), text.end());
  }
  for (const std::uint8_t compcode : kCodecs) {
    EncodeParameters parameters;
    parameters.compcode = compcode;
    parameters.clevel = 3;
    parameters.blocksize = 1000;
    const std::size_t without = encode(parameters, plain).bytes.size();
    parameters.use_dict = true;
    const EncodedChunk chunk = encode(parameters, plain);
    expect_sound(parameters, chunk, plain);
    const bool knows = compcode == codec::kLz4 || compcode == kLz4hc || compcode == codec::kZstd;
    EXPECT_EQ(header_of(chunk).dictionary, knows) << "codec " << int{compcode};
    if (knows) {
      EXPECT_LT(chunk.bytes.size(), without) << "codec " << int{compcode};
    }
    round_trip(parameters, random_bytes(100'000, 5));
    round_trip(parameters, Bytes(plain.begin(), plain.begin() + 3000));
  }
}

TEST(ChunkEncoder, OneContextServesAllCodecsInTurn) {
  codec::EncodeContext context;
  for (int turn = 0; turn < 3; ++turn) {
    for (const std::uint8_t compcode : kCodecs) {
      for (const bool use_dict : {true, false}) {
        EncodeParameters parameters = shuffled(compcode, 8);
        parameters.use_dict = use_dict;
        parameters.clevel = 1 + 2 * turn;
        const Bytes plain = mixed_bytes(50'000, 7);
        const auto chunk = codec::encode_chunk(context, parameters, plain);
        ASSERT_TRUE(chunk);
        expect_sound(parameters, *chunk, plain);
        // A new context gives the same bytes.
        EXPECT_EQ(chunk->bytes, encode(parameters, plain).bytes);
        context.trim(0);
      }
    }
  }
}

TEST(ChunkEncoder, RefusesLossyAndInvalidParameters) {
  const auto kind = [](const EncodeParameters& parameters) {
    const auto checked = codec::check_encodable(parameters);
    EXPECT_FALSE(checked);
    codec::EncodeContext context;
    EXPECT_FALSE(codec::encode_chunk(context, parameters, Bytes(100, 1)));
    return checked ? codec::ErrorKind::io : checked.error().kind;
  };
  for (const int filter : {4, 5, 32, 33, 34, 36, 37, 160, 255}) {
    EncodeParameters parameters;
    parameters.filters[2] = static_cast<std::uint8_t>(filter);
    EXPECT_EQ(kind(parameters), codec::ErrorKind::unsupported) << filter;
  }
  for (const int compcode : {3, 6, 32, 33, 38, 255}) {
    EncodeParameters parameters;
    parameters.compcode = static_cast<std::uint8_t>(compcode);
    EXPECT_EQ(kind(parameters), codec::ErrorKind::unsupported) << compcode;
  }
  EncodeParameters parameters;
  parameters.clevel = 10;
  EXPECT_EQ(kind(parameters), codec::ErrorKind::invalid);
  parameters = {};
  parameters.typesize = 0;
  EXPECT_EQ(kind(parameters), codec::ErrorKind::invalid);
  parameters = {};
  parameters.blocksize = -1;
  EXPECT_EQ(kind(parameters), codec::ErrorKind::invalid);
  parameters = {};
  parameters.split_mode = 5;
  EXPECT_EQ(kind(parameters), codec::ErrorKind::invalid);
}

TEST(BlockSizes, AsTheReferenceChooses) {
  // Numbers of codecs.md section 5, for a chunk of 8 MiB.
  const auto size = [](std::uint8_t compcode, int clevel, std::int32_t typesize, bool shuffle) {
    EncodeParameters parameters;
    parameters.compcode = compcode;
    parameters.clevel = clevel;
    parameters.typesize = typesize;
    if (shuffle) parameters.filters[5] = id(FilterId::shuffle);
    return codec::choose_blocksize(parameters, 8 << 20);
  };
  EXPECT_EQ(size(codec::kLz4, 1, 1, false), 16 << 10);
  EXPECT_EQ(size(codec::kLz4, 5, 4, false), 128 << 10);
  EXPECT_EQ(size(codec::kLz4, 9, 4, false), 256 << 10);
  EXPECT_EQ(size(kZlib, 5, 4, true), 256 << 10);
  EXPECT_EQ(size(kZlib, 9, 4, true), 1 << 20);
  EXPECT_EQ(size(codec::kZstd, 5, 4, true), 256 << 10);
  EXPECT_EQ(size(codec::kLz4, 5, 8, true), 512 << 10);
  EXPECT_EQ(size(kBlosclz, 9, 16, true), 4 << 20);
  EXPECT_EQ(size(codec::kLz4, 1, 3, true), 96 << 10);
  EXPECT_EQ(size(codec::kZstd, 5, 300, true), 262144 / 300 * 300);
}

}  // namespace
}  // namespace cframefs
