// The BloscLZ encoder: streams decode to the input, fit into the buffer, and are short for compressible input.
#include "codec/stream/blosclz_encoder.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/codec/stream/blosclz_writer.h"

namespace cframefs {
namespace {

using codec::BlosclzTable;

// Encodes into a buffer of exactly `room` bytes, so that a sanitizer detects any access past it. Returns an empty
// string if the encoder gives up.
Bytes encode(BlosclzTable& table, int clevel, const Bytes& plain, std::size_t room) {
  Bytes out(room);
  const std::size_t length = codec::encode_blosclz(table, clevel, plain, out);
  EXPECT_LE(length, room);
  out.resize(length);
  return out;
}

RC_GTEST_PROP(BlosclzEncoderProperty, DecodesAtEveryLevel, (std::uint32_t seed)) {
  BlosclzTable table;
  const auto size = *rc::gen::inRange<std::size_t>(0, *rc::gen::element<std::size_t>(100, 5000, 200'000));
  const Bytes plain = mixed_bytes(size, seed);
  for (int clevel = 1; clevel <= 9; ++clevel) {
    const Bytes stream = encode(table, clevel, plain, plain.size());
    RC_ASSERT(stream.empty() || decodes_to(stream, plain));
  }
}

RC_GTEST_PROP(BlosclzEncoderProperty, KeepsToTheRoomItIsGiven, (std::uint32_t seed)) {
  BlosclzTable table;
  const Bytes plain = mixed_bytes(5000, seed);
  const Bytes whole = encode(table, 9, plain, plain.size());
  for (std::size_t less = 0; less < 40 && less <= whole.size(); ++less) {
    const Bytes stream = encode(table, 9, plain, whole.size() - less);
    RC_ASSERT(stream.empty() || (stream == whole && less == 0));
  }
}

// The same noise twice, with zeros between, at distances where the encoding of the distance changes.
TEST(BlosclzEncoder, FindsRepeatsUpToTheMaximumDistance) {
  const Bytes noise = random_bytes(200, 1);
  for (const std::size_t distance : {1000, 8190, 8191, 8192, 8193, 65536, 73726, 73727, 73728, 80000}) {
    Bytes plain = noise;
    plain.resize(distance);
    plain += noise;
    plain += random_bytes(20, 2);
    BlosclzTable table;
    const Bytes stream = encode(table, 5, plain, plain.size());
    EXPECT_TRUE(decodes_to(stream, plain)) << distance;
    EXPECT_EQ(stream.size() - distance / 255 < 300, distance <= 73727) << distance << ": " << stream.size();
  }
}

TEST(BlosclzEncoder, RunsAndPeriodsOfAnyLengthShrinkToAlmostNothing) {
  BlosclzTable table;
  for (const std::size_t period : {1, 2, 3, 7, 8, 100}) {
    for (const std::size_t size : {300, 524, 525, 1000, 65536, 300'000}) {
      Bytes plain = random_bytes(period, 3);
      while (plain.size() < size)
        plain.push_back(plain[plain.size() - period]);
      for (int clevel = 1; clevel <= 9; ++clevel) {
        const Bytes stream = encode(table, clevel, plain, plain.size());
        EXPECT_TRUE(decodes_to(stream, plain)) << period << " of " << size;
        EXPECT_LT(stream.size(), 20 + period * 33 / 32 + size / 200) << period << " of " << size;
      }
    }
  }
}

TEST(BlosclzEncoder, GivesUpOnNoise) {
  BlosclzTable table;
  for (int clevel = 1; clevel <= 9; ++clevel)
    EXPECT_TRUE(encode(table, clevel, random_bytes(100'000, 4), 100'000).empty());
}

TEST(BlosclzEncoder, EncodesIfOnlyTheLastSampleShrinks) {
  // In a bitshuffled block, only the upper bits, which come last, may repeat.
  Bytes plain = random_bytes(48'000, 5);
  plain.resize(64'000);
  BlosclzTable table;
  for (int clevel = 1; clevel <= 9; ++clevel) {
    const Bytes stream = encode(table, clevel, plain, plain.size());
    EXPECT_TRUE(decodes_to(stream, plain)) << clevel;
    EXPECT_LT(stream.size(), 50'000u) << clevel;
  }
}

TEST(BlosclzEncoder, NeverMatchesAgainstAnEarlierStream) {
  BlosclzTable table;
  const Bytes first = mixed_bytes(20'000, 6);
  const Bytes alone = encode(table, 5, first, first.size());
  for (int turn = 0; turn < 50; ++turn)
    ASSERT_EQ(encode(table, 5, first, first.size()), alone);
}

}  // namespace
}  // namespace cframefs
