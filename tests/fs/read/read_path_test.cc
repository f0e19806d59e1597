// ReadPath: a reader beside the thread that decodes ahead of it.
#include "fs/read/read_path.h"

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "frame/io/byte_source.h"
#include "frame/open/open.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

namespace cframefs::fs {
namespace {

constexpr std::size_t kBlock = std::size_t{256} << 10U;
constexpr std::size_t kChunk = 4 * kBlock;

test::Bytes content_of_one_chunk() {
  test::Bytes plain(kChunk);
  for (std::size_t i = 0; i < plain.size(); ++i)
    plain[i] = static_cast<std::uint8_t>(i * i >> 7U);
  return plain;
}

/// Returns a frame of one chunk of four blocks.
test::Bytes frame_of(const test::Bytes& plain) {
  test::FrameBuilder builder = test::plain_frame(plain, static_cast<std::int32_t>(kChunk));
  builder.blocksize = static_cast<std::int32_t>(kBlock);
  builder.chunk_section = test::raw_block_chunk(plain, static_cast<std::uint32_t>(kBlock));
  return builder.build();
}

TEST(ReadPathTest, AReaderDecodesTheBlocksAfterTheOneThatIsDecodedAhead) {
  const test::Bytes plain = content_of_one_chunk();
  auto opened = test::open_frame(frame_of(plain));
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

/// A source on a server: it notes reads of blocks whose bytes were not fetched before.
class ServerSource final : public frame::ByteSource {
 public:
  explicit ServerSource(test::Bytes bytes) : bytes_(std::move(bytes)) {}

  std::uint64_t size() const override { return bytes_.size(); }
  codec::Result<void> read(frame::FileOffset at, codec::ByteSpan into) const override {
    // Shorter reads are of headers.
    const bool waits = into.size() > 1024 && std::none_of(fetched_.begin(), fetched_.end(), [&](const auto& range) {
                         return range.first <= at.value && at.value + into.size() <= range.second;
                       });
    waits_ += waits ? 1 : 0;
    std::copy_n(bytes_.begin() + static_cast<std::ptrdiff_t>(at.value), into.size(), into.begin());
    return {};
  }
  bool is_remote() const override { return true; }
  codec::Result<void> fetch(frame::FileOffset at, std::uint64_t length) const override {
    fetched_.emplace_back(at.value, at.value + length);
    return {};
  }

  int waits() const { return waits_; }

 private:
  const test::Bytes bytes_;
  mutable std::vector<std::pair<std::uint64_t, std::uint64_t>> fetched_;
  mutable int waits_ = 0;
};

TEST(ReadPathTest, WhatIsDecodedAheadIsFetchedBeforeItTakesATurnToDecode) {
  const auto source = std::make_shared<const ServerSource>(frame_of(content_of_one_chunk()));
  auto opened = frame::open_container(source);
  ASSERT_TRUE(opened);
  DecodingStatistics statistics;
  DedupLogger once;
  ReadPath read_path(std::uint64_t{64} << 20, statistics, once, 2);
  auto view = std::make_shared<const frame::FlatView>(std::move(*opened), test::Bytes());
  const FrameSnapshot snapshot(1, {}, std::move(view), "x", read_path.cache());
  const int before = source->waits();
  read_path.decode_ahead(snapshot, frame::FlatOffset{0}, kChunk, [] { return true; });
  EXPECT_EQ(statistics.blocks_decoded.load(), 4U);
  EXPECT_EQ(source->waits(), before);
}

}  // namespace
}  // namespace cframefs::fs
