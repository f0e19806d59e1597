// Shuffle and bitshuffle: vector versions compared with plain versions, and these with filters.md.
#include "codec/filter/shuffle.h"

#include <algorithm>
#include <vector>

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codec/filter/bitshuffle.h"
#include "tests/codec/plain_filters.h"
#include "tests/codec/vector_targets.h"

namespace cframefs {
namespace {

using Filter = void (*)(std::size_t, codec::ByteView, codec::ByteSpan);

Bytes run(Filter filter, std::size_t width, const Bytes& in) {
  Bytes out(in.size(), 0xa5);
  filter(width, in, out);
  return out;
}

// Lengths with no group, one group, several groups, and every kind of remainder.
std::vector<std::size_t> lengths(std::size_t width) {
  std::vector<std::size_t> all;
  for (const std::size_t items : {0, 1, 2, 7, 8, 9, 15, 16, 17, 31, 32, 33, 48, 63, 64, 65, 511, 512, 513, 1031}) {
    all.push_back(items * width);
    if (width > 1) all.push_back(items * width + width - 1);
  }
  return all;
}

std::vector<std::size_t> widths() {
  std::vector<std::size_t> all;
  for (std::size_t width = 1; width <= 40; ++width)
    all.push_back(width);
  for (const std::size_t width : {47, 48, 49, 64, 100, 128, 254, 255})
    all.push_back(width);
  return all;
}

void compare(Filter fast, Filter plain) {
  for (const std::size_t width : widths()) {
    for (const std::size_t length : lengths(width)) {
      const Bytes in = random_bytes(length, static_cast<std::uint32_t>(width * 1000 + length));
      const Bytes expected = run(plain, width, in);
      for_each_vector_target(
          [&] { ASSERT_EQ(run(fast, width, in), expected) << "width " << width << ", length " << length; });
      if (testing::Test::HasFatalFailure()) return;
    }
  }
}

TEST(Shuffle, VectorsShuffleAsThePlainVersion) {
  compare(codec::shuffle, codec::plain::shuffle);
}
TEST(Shuffle, VectorsUnshuffleAsThePlainVersion) {
  compare(codec::unshuffle, codec::plain::unshuffle);
}
TEST(Bitshuffle, VectorsShuffleAsThePlainVersion) {
  compare(codec::bitshuffle, codec::plain::bitshuffle);
}
TEST(Bitshuffle, VectorsUnshuffleAsThePlainVersion) {
  compare(codec::bitunshuffle, codec::plain::bitunshuffle);
}

TEST(Shuffle, LaysBytesOutAsDescribed) {
  const Bytes in{0x00, 0x01, 0x02, 0x10, 0x11, 0x12, 0x20, 0x21, 0x22, 0xee};
  const Bytes planes{0x00, 0x10, 0x20, 0x01, 0x11, 0x21, 0x02, 0x12, 0x22, 0xee};
  EXPECT_EQ(run(codec::plain::shuffle, 3, in), planes);
  EXPECT_EQ(run(codec::plain::unshuffle, 3, planes), in);
  EXPECT_EQ(run(codec::unshuffle, 3, planes), in);
}

/// Planes of `count` items in separate memory, some of them constant, and the same planes concatenated.
struct SomePlanes {
  SomePlanes(std::size_t width, std::size_t count, unsigned constant) : bytes(width) {
    for (std::size_t j = 0; j < width; ++j) {
      bytes[j] = random_bytes(count, static_cast<std::uint32_t>(width * 1000 + count + j));
      if ((constant >> j & 1) != 0) {
        const auto value = static_cast<std::uint8_t>(j * 37);
        std::fill(bytes[j].begin(), bytes[j].end(), value);
        planes.push_back(codec::Plane::constant(value));
      } else {
        planes.emplace_back(bytes[j].data());
      }
      joined += bytes[j];
    }
  }
  std::vector<Bytes> bytes;
  std::vector<codec::Plane> planes;
  Bytes joined;
};

TEST(Shuffle, ScatteredPlanesGiveTheSameAsContiguousPlanes) {
  for (std::size_t width = 2; width <= codec::kMaxPlanes; ++width) {
    for (const std::size_t count : {1, 2, 15, 16, 31, 32, 33, 63, 64, 65, 100, 1031}) {
      for (const unsigned constant : {0U, 1U, 0x55U, 0xfeU, 0xffU}) {
        const SomePlanes some(width, count, constant);
        const Bytes expected = run(codec::plain::unshuffle, width, some.joined);
        for_each_vector_target([&] {
          Bytes out(width * count, 0xa5);
          codec::unshuffle_planes(some.planes, out);
          ASSERT_EQ(out, expected) << "width " << width << ", items " << count << ", constant " << constant;
        });
        if (testing::Test::HasFatalFailure()) return;
      }
    }
  }
}

RC_GTEST_PROP(ShuffleProperty, AWindowOfPlanesIsThatPartOfTheWhole, ()) {
  const auto width = *rc::gen::inRange<std::size_t>(2, codec::kMaxPlanes + 1);
  const SomePlanes some(width, *rc::gen::inRange<std::size_t>(1, 300), *rc::gen::inRange(0U, 256U));
  const Bytes whole = run(codec::plain::unshuffle, width, some.joined);
  const auto begin = *rc::gen::inRange<std::size_t>(0, whole.size());
  Bytes out(*rc::gen::inRange<std::size_t>(0, whole.size() - begin + 1));
  codec::unshuffle_window(some.planes, begin, out);
  RC_ASSERT(std::equal(out.begin(), out.end(), whole.begin() + static_cast<std::ptrdiff_t>(begin)));
}

TEST(Shuffle, RepeatedShufflesAreUndoneInOnePass) {
  for (const std::size_t width : {1, 2, 3, 4, 16, 255}) {
    for (const std::size_t length : {0, 1, 2, 3, 255, 256, 1000, 4096}) {
      const Bytes plain = random_bytes(length, 1);
      Bytes shuffled = plain;
      for (std::size_t times = 0; times <= 12; ++times) {
        Bytes out(length, 0xa5);
        codec::unshuffle_repeatedly(width, times, shuffled, out);
        ASSERT_EQ(out, plain) << "width " << width << ", length " << length << ", times " << times;
        shuffled = apply_shuffle(width, shuffled);
      }
    }
  }
}

TEST(Bitshuffle, LaysBitsOutAsDescribed) {
  // Eight items of two bytes, and one remaining item.
  const Bytes in{1, 0, 0, 0, 1, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0x80, 0xee, 0xff};
  Bytes rows(18);
  rows[0] = 0x85;   // bit 0 of items 0, 2 and 7
  rows[15] = 0x84;  // bit 7 of the second byte of items 2 and 7
  rows[16] = 0xee;
  rows[17] = 0xff;
  EXPECT_EQ(run(codec::plain::bitshuffle, 2, in), rows);
  EXPECT_EQ(run(codec::plain::bitunshuffle, 2, rows), in);
  EXPECT_EQ(run(codec::bitunshuffle, 2, rows), in);
}

RC_GTEST_PROP(ShuffleProperty, UndoesWhatTheDescriptionSays, (std::uint32_t seed)) {
  const auto width = *rc::gen::inRange<std::size_t>(1, 256);
  const Bytes in = random_bytes(*rc::gen::inRange<std::size_t>(0, 20000), seed);
  RC_ASSERT(run(codec::shuffle, width, in) == apply_shuffle(width, in));
  RC_ASSERT(run(codec::unshuffle, width, apply_shuffle(width, in)) == in);
  RC_ASSERT(run(codec::bitshuffle, width, in) == apply_bitshuffle(width, false, in));
  RC_ASSERT(run(codec::bitunshuffle, width, apply_bitshuffle(width, false, in)) == in);
}

}  // namespace
}  // namespace cframefs
