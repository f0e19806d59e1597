// ChunkOrder: the pieces of any range cover it in order, without gap, and behind the head.
#include "frame/container/chunk_order.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs {
namespace {

using frame::FlatOffset;
using test::Bytes;

TEST(ChunkOrder, PiecesCoverARangeInOrderWithoutGap) {
  EXPECT_TRUE(rc::check("pieces", [] {
    const auto plain = Bytes(*rc::gen::inRange<std::size_t>(1, 5000), 7);
    const auto chunksize = *rc::gen::inRange<std::int32_t>(1, 1200);
    const auto opened = test::open_frame(test::plain_frame(plain, chunksize).build());
    RC_ASSERT(opened.has_value());
    const frame::ChunkOrder order(**opened);
    const auto begin = *rc::gen::inRange<std::uint64_t>(0, plain.size() + 1);
    const auto length = *rc::gen::inRange<std::uint64_t>(0, plain.size() - begin + 1);
    std::vector<frame::Piece> pieces;
    RC_ASSERT(order.map(FlatOffset{begin}, length, pieces).has_value());
    std::uint64_t out = 0;
    for (const frame::Piece& piece : pieces) {
      RC_ASSERT(piece.out == out);
      RC_ASSERT(piece.length > 0U);
      RC_ASSERT(static_cast<std::uint64_t>(piece.chunk.value) * static_cast<std::uint64_t>(chunksize) + piece.inner ==
                begin + out);
      RC_ASSERT(piece.inner + piece.length <= static_cast<std::uint32_t>(chunksize));
      out += piece.length;
    }
    RC_ASSERT(out == length);
  }));
}

TEST(ChunkOrder, RangesPastTheEndAreRefused) {
  const auto opened = test::open_frame(test::plain_frame(Bytes(100), 30).build());
  ASSERT_TRUE(opened);
  const frame::ChunkOrder order(**opened);
  std::vector<frame::Piece> pieces;
  EXPECT_FALSE(order.map(FlatOffset{0}, 101, pieces));
  EXPECT_FALSE(order.map(FlatOffset{101}, 0, pieces));
  EXPECT_FALSE(order.map(FlatOffset{50}, UINT64_MAX, pieces));
  EXPECT_TRUE(order.map(FlatOffset{100}, 0, pieces));
}

TEST(ChunkOrder, PiecesBeginBehindTheHead) {
  const auto opened = test::open_frame(test::plain_frame(Bytes(100), 30).build());
  ASSERT_TRUE(opened);
  const frame::ChunkOrder order(**opened, 64);
  std::vector<frame::Piece> pieces;
  EXPECT_TRUE(order.map(FlatOffset{10}, 54, pieces));
  EXPECT_TRUE(pieces.empty());
  EXPECT_TRUE(order.map(FlatOffset{60}, 40, pieces));
  ASSERT_EQ(pieces.size(), 2U);
  EXPECT_EQ(pieces[0].chunk.value, 0);
  EXPECT_EQ(pieces[0].inner, 0U);
  EXPECT_EQ(pieces[0].length, 30U);
  EXPECT_EQ(pieces[0].out, 4U);
  EXPECT_EQ(pieces[1].chunk.value, 1);
  EXPECT_EQ(pieces[1].length, 6U);
  EXPECT_EQ(pieces[1].out, 34U);
  EXPECT_FALSE(order.map(FlatOffset{60}, 105, pieces));
}

}  // namespace
}  // namespace cframefs
