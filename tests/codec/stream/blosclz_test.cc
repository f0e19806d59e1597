// The BloscLZ decoder, tested with streams written instruction by instruction (codecs.md section 3).
#include "codec/stream/blosclz.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "tests/codec/stream/blosclz_writer.h"

namespace cframefs {
namespace {

using codec::decode_blosclz;

bool refused(const Bytes& stream, std::size_t size) {
  Bytes out(size);
  const auto decoded = decode_blosclz(stream, out);
  return !decoded && decoded.error().kind == codec::ErrorKind::corruption;
}

void add_literals(BlosclzWriter& writer, std::size_t count, std::uint32_t seed) {
  const Bytes bytes = random_bytes(count, seed);
  for (std::size_t at = 0; at < count; at += 32) {
    writer.literals(Bytes(bytes.begin() + static_cast<std::ptrdiff_t>(at),
                          bytes.begin() + static_cast<std::ptrdiff_t>(std::min(count, at + 32))));
  }
}

TEST(Blosclz, LiteralsOfEveryLength) {
  for (std::size_t count = 1; count <= 32; ++count) {
    BlosclzWriter writer;
    writer.literals(random_bytes(count, 1));
    EXPECT_TRUE(decodes_to(writer.stream(), writer.plain())) << count;
  }
}

TEST(Blosclz, TheFirstControlByteIsLiteralsWhateverItsMarker) {
  for (unsigned marker = 0; marker < 8; ++marker) {
    const Bytes stream{static_cast<std::uint8_t>(marker << 5 | 2), 'a', 'b', 'c'};
    EXPECT_TRUE(decodes_to(stream, {'a', 'b', 'c'})) << marker;
  }
}

TEST(Blosclz, OverlappingMatchesOfEveryDistance) {
  for (std::size_t distance = 1; distance <= 80; ++distance) {
    for (const std::size_t length : {3, 4, 7, 8, 9, 15, 16, 17, 31, 32, 33, 100, 263, 264, 265, 1000}) {
      for (const std::size_t behind : {1, 15, 16, 40}) {
        BlosclzWriter writer;
        add_literals(writer, distance, 2);
        writer.match(distance, length);
        add_literals(writer, behind, 3);
        ASSERT_TRUE(decodes_to(writer.stream(), writer.plain())) << distance << " " << length << " " << behind;
      }
    }
  }
}

TEST(Blosclz, DistancesAroundTheLimits) {
  for (const std::size_t distance : {255, 256, 257, 8190, 8191, 8192, 8193, 8447, 8448, 73726, 73727}) {
    for (const std::size_t length : {3, 8, 9, 300}) {
      BlosclzWriter writer;
      add_literals(writer, distance, 4);
      writer.match(distance, length).literals({1});
      EXPECT_TRUE(decodes_to(writer.stream(), writer.plain())) << distance << " " << length;
      // One byte further back lies before the first byte.
      BlosclzWriter beyond;
      add_literals(beyond, distance - 1, 4);
      beyond.match(distance, length).literals({1});
      EXPECT_TRUE(refused(beyond.stream(), distance + length)) << distance;
    }
  }
}

TEST(Blosclz, LengthExtensionsRunThroughBytesOf255) {
  for (const std::size_t length : {9, 10, 263, 264, 265, 518, 519, 520, 100000}) {
    BlosclzWriter writer;
    writer.literals({7, 8, 9}).match(3, length).literals({1, 2});
    EXPECT_TRUE(decodes_to(writer.stream(), writer.plain())) << length;
  }
}

TEST(Blosclz, MustNotEndWithAMatch) {
  BlosclzWriter writer;
  writer.literals({1, 2, 3, 4}).match(4, 100);
  EXPECT_TRUE(refused(writer.stream(), writer.plain().size()));
  EXPECT_TRUE(refused(writer.stream(), 4));
  writer.literals({5});
  EXPECT_TRUE(decodes_to(writer.stream(), writer.plain()));
}

TEST(Blosclz, ExactlyAsManyBytesAsExpected) {
  BlosclzWriter writer;
  writer.literals(random_bytes(30, 5)).match(20, 50).literals({1, 2, 3});
  const std::size_t size = writer.plain().size();
  EXPECT_TRUE(decodes_to(writer.stream(), writer.plain()));
  for (const std::size_t other : {std::size_t{0}, std::size_t{1}, std::size_t{29}, size - 3, size - 1, size + 1}) {
    EXPECT_TRUE(refused(writer.stream(), other)) << other;
  }
  EXPECT_TRUE(refused({}, 0));
  EXPECT_TRUE(refused({}, 1));
}

TEST(Blosclz, EveryTruncationIsRefused) {
  BlosclzWriter writer;
  add_literals(writer, 9000, 6);
  writer.match(8500, 700).literals({1, 2}).match(1, 300).literals({3}).match(700, 5).literals({4});
  const Bytes& stream = writer.stream();
  ASSERT_TRUE(decodes_to(stream, writer.plain()));
  for (std::size_t size = 0; size < stream.size(); ++size) {
    ASSERT_TRUE(
        refused(Bytes(stream.begin(), stream.begin() + static_cast<std::ptrdiff_t>(size)), writer.plain().size()))
        << size;
  }
}

RC_GTEST_PROP(BlosclzProperty, AnyInstructionsDecode, ()) {
  BlosclzWriter writer;
  const auto first = *rc::gen::resize(32, rc::gen::nonEmpty<Bytes>());
  add_literals(writer, first.size(), 7);
  const int count = *rc::gen::inRange(0, 60);
  for (int i = 0; i < count; ++i) {
    if (*rc::gen::inRange(0, 3) == 0) {
      writer.literals(random_bytes(*rc::gen::inRange<std::size_t>(1, 33), static_cast<std::uint32_t>(i)));
    } else {
      const auto reach = std::min<std::size_t>(writer.plain().size(), 73727);
      writer.match(*rc::gen::inRange<std::size_t>(1, reach + 1), *rc::gen::inRange<std::size_t>(3, 600));
    }
  }
  writer.literals({9});
  RC_ASSERT(decodes_to(writer.stream(), writer.plain()));
}

RC_GTEST_PROP(BlosclzProperty, EncodedDataDecodes, (std::uint32_t seed)) {
  const Bytes plain = mixed_bytes(*rc::gen::inRange<std::size_t>(1, 40000), seed);
  RC_ASSERT(decodes_to(blosclz_encode(plain), plain));
}

RC_GTEST_PROP(BlosclzProperty, NoiseNeverWritesBeyond, (Bytes stream)) {
  Bytes out(*rc::gen::inRange<std::size_t>(0, 500));
  const auto decoded = decode_blosclz(stream, out);
  // Not by ||: RC_ASSERT evaluates both sides.
  if (!decoded) RC_ASSERT(decoded.error().kind == codec::ErrorKind::corruption);
}

}  // namespace
}  // namespace cframefs
