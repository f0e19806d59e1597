// Delta and bytedelta, applied and undone, compared with their definition in filters.md.
#include "codec/filter/delta.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include "codec/filter/bytedelta.h"
#include "tests/codec/plain_filters.h"
#include "tests/codec/vector_targets.h"

namespace cframefs {
namespace {

using codec::BytedeltaKind;

TEST(Delta, UnitFollowsTheTypesize) {
  for (const std::size_t typesize : {1, 2, 4, 8})
    EXPECT_EQ(codec::delta_unit(typesize), typesize);
  for (const std::size_t typesize : {16, 24, 32, 248})
    EXPECT_EQ(codec::delta_unit(typesize), 8u);
  for (const std::size_t typesize : {3, 5, 6, 7, 12, 20, 255})
    EXPECT_EQ(codec::delta_unit(typesize), 1u);
}

TEST(Delta, LeavesAPartialItemAlone) {
  for (const std::size_t unit : {2, 4, 8}) {
    for (std::size_t rest = 1; rest < unit; ++rest) {
      const Bytes plain = random_bytes(10 * unit + rest, 1);
      Bytes block = apply_delta(unit, {}, plain);
      EXPECT_TRUE(std::equal(plain.end() - static_cast<std::ptrdiff_t>(rest), plain.end(),
                             block.end() - static_cast<std::ptrdiff_t>(rest)));
      codec::undo_delta_within(unit, block);
      EXPECT_EQ(block, plain);
    }
  }
}

RC_GTEST_PROP(DeltaProperty, Undone, (std::uint32_t seed)) {
  const auto typesize = *rc::gen::inRange<std::size_t>(1, 256);
  const std::size_t unit = codec::delta_unit(typesize);
  const Bytes reference = random_bytes(*rc::gen::inRange<std::size_t>(1, 5000), seed);
  Bytes first = apply_delta(typesize, {}, reference);
  Bytes twin = first;
  codec::undo_delta_within(unit, first);
  codec::plain::undo_delta_within(unit, twin);
  RC_ASSERT(first == reference);
  RC_ASSERT(twin == reference);

  const Bytes plain = random_bytes(*rc::gen::inRange<std::size_t>(0, reference.size() + 1), seed + 1);
  Bytes block = apply_delta(typesize, reference, plain);
  codec::undo_delta_against(unit, reference, block);
  RC_ASSERT(block == plain);
}

TEST(Bytedelta, UndoneWithAndWithoutVectors) {
  for_each_vector_target([] {
    for (const std::size_t planes : {1, 2, 3, 4, 7, 8, 16, 255, 300}) {
      for (const std::size_t length : {0, 1, 5, 15, 16, 17, 100, 1023, 4096, 5003}) {
        for (const bool restarted : {false, true}) {
          const BytedeltaKind kind = restarted ? BytedeltaKind::restarted : BytedeltaKind::whole;
          const Bytes plain = random_bytes(length, static_cast<std::uint32_t>(length));
          const Bytes filtered = apply_bytedelta(planes, restarted, plain);
          Bytes fast = filtered;
          codec::undo_bytedelta(planes, kind, fast);
          ASSERT_EQ(fast, plain) << planes << " planes, " << length << " bytes, restarted " << restarted;
          Bytes slow = filtered;
          codec::plain::undo_bytedelta(planes, kind, slow);
          ASSERT_EQ(slow, plain) << planes << " planes, " << length << " bytes, restarted " << restarted;
        }
      }
    }
  });
}

// Regression: a frame may claim items of 2 GiB, and iterating over that many empty planes took seconds per block.
TEST(Bytedelta, MorePlanesThanBytesTakeNoTime) {
  const Bytes plain = random_bytes(1000, 3);
  for (const BytedeltaKind kind : {BytedeltaKind::whole, BytedeltaKind::restarted}) {
    Bytes block = plain;
    for (int times = 0; times < 1000; ++times)
      codec::undo_bytedelta(0x7fffffff, kind, block);
    EXPECT_EQ(block, plain);
  }
}

TEST(Bytedelta, TheTwoKindsDifferAfterTheLastWholeSixteen) {
  Bytes whole(20, 1);
  Bytes restarted(20, 1);
  codec::undo_bytedelta(1, BytedeltaKind::whole, whole);
  codec::undo_bytedelta(1, BytedeltaKind::restarted, restarted);
  EXPECT_EQ(whole[15], 16);
  EXPECT_EQ(whole[16], 17);
  EXPECT_EQ(restarted[15], 16);
  EXPECT_EQ(restarted[16], 1);
  EXPECT_EQ(restarted[19], 4);
}

RC_GTEST_PROP(DeltaProperty, AppliedAsDescribed, (std::uint32_t seed)) {
  const auto typesize = *rc::gen::inRange<std::size_t>(1, 256);
  const std::size_t unit = codec::delta_unit(typesize);
  const Bytes reference = random_bytes(*rc::gen::inRange<std::size_t>(1, 5000), seed);
  Bytes out(reference.size(), 0xa5);
  codec::delta_within(unit, reference, out);
  RC_ASSERT(out == apply_delta(typesize, {}, reference));

  const Bytes plain = random_bytes(*rc::gen::inRange<std::size_t>(0, reference.size() + 1), seed + 1);
  out.assign(plain.size(), 0xa5);
  codec::delta_against(unit, reference, plain, out);
  RC_ASSERT(out == apply_delta(typesize, reference, plain));
}

RC_GTEST_PROP(BytedeltaProperty, AppliedAsDescribed, (std::uint32_t seed)) {
  const auto planes = *rc::gen::inRange<std::size_t>(1, 320);
  const Bytes plain = random_bytes(*rc::gen::inRange<std::size_t>(0, 5000), seed);
  Bytes out(plain.size(), 0xa5);
  codec::bytedelta(planes, plain, out);
  RC_ASSERT(out == apply_bytedelta(planes, false, plain));
}

}  // namespace
}  // namespace cframefs
