// ReadPath: a reader beside the thread that decodes ahead of it.
#include "fs/read/read_path.h"

#include <memory>

#include <gtest/gtest.h>

#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kChunk = 4 * kBlock;

TEST(ReadPathTest, AReaderDecodesTheBlocksAfterTheOneThatIsDecodedAhead) {
  test::Bytes plain(kChunk);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::uint8_t>(i * i >> 7U);
  test::FrameBuilder builder = test::plain_frame(plain, static_cast<std::int32_t>(kChunk));
  builder.blocksize = static_cast<std::int32_t>(kBlock);
  builder.chunk_section = test::raw_block_chunk(plain, static_cast<std::uint32_t>(kBlock));
  auto opened = test::open_frame(builder.build());
  ASSERT_TRUE(opened);
  DecodingStatistics statistics;
  DedupLogger once;
  ReadPath read_path(std::uint64_t{64} << 20, statistics, once, 2);
  auto view = std::make_shared<const frame::FlatView>(std::move(*opened), test::Bytes());
  const FrameSnapshot snapshot(1, {}, std::move(view), "x", read_path.cache());

  const auto read = [&](std::size_t at) {
    Reply reply;
    EXPECT_TRUE(read_path.read(snapshot, frame::FlatOffset{at}, kBlock, reply));
    test::Bytes bytes(reply.size());
    reply.copy_to(bytes.data());
    return bytes;
  };
  const auto expected = [&](std::size_t at) {
    const codec::ByteView bytes = codec::ByteView(plain).subspan(at, kBlock);
    return test::Bytes(bytes.begin(), bytes.end());
  };
  int asked = 0;
  // A reader that waited for the whole chunk here would wait for ever.
  read_path.decode_ahead(snapshot, frame::FlatOffset{0}, kChunk, [&] {
    if (++asked == 3) {
      EXPECT_EQ(read(3 * kBlock), expected(3 * kBlock));
    }
    return true;
  });
  EXPECT_GE(asked, 4);
  EXPECT_EQ(statistics.blocks_decoded.load(), 4U);
  EXPECT_EQ(read(kBlock), expected(kBlock));
  EXPECT_EQ(statistics.blocks_decoded.load(), 4U);
}

}  // namespace
}  // namespace cframefs::fs
