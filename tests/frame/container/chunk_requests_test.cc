// What a server is asked for before a chunk is opened.
#include "frame/container/chunk_requests.h"

#include <algorithm>
#include <random>
#include <utility>

#include <gtest/gtest.h>

#include "frame/cframe/cframe.h"
#include "frame/container/chunk_reader.h"
#include "frame/io/overlay_source.h"
#include "frame/io/read_record.h"
#include "frame/store/zip_member.h"
#include "tests/support/frame_builder.h"

namespace cframefs {
namespace {

using codec::ByteRange;
using codec::ByteSpan;
using frame::ChunkNumber;
using frame::FileOffset;
using test::Bytes;

/// An object in memory, of a server that may have many readers. Notes what is fetched ahead.
class ServedSource final : public frame::ByteSource {
 public:
  explicit ServedSource(Bytes bytes) : bytes_(frame::memory_source(std::move(bytes))) {}
  std::uint64_t size() const override { return bytes_->size(); }
  codec::Result<void> read(FileOffset at, ByteSpan into) const override { return bytes_->read(at, into); }
  bool is_remote() const override { return true; }
  bool is_busy() const override { return busy; }
  void prefetch(FileOffset at, std::uint64_t length) const override {
    requested.push_back({at.value, at.value + length});
  }

  bool busy = false;
  mutable std::vector<ByteRange> requested;

 private:
  const std::unique_ptr<frame::ByteSource> bytes_;
};

/// Chunks whose blocks are all of one length as stored, and which are fetched whole by few readers.
struct ServedFrame {
  static constexpr std::size_t kLength = 800'000;  // plain bytes of a chunk
  static constexpr std::int64_t kCount = 4;

  /// `told`: the block size in the header of the frame; 0 if each chunk has its own.
  explicit ServedFrame(std::uint32_t blocksize, std::int32_t told) {
    Bytes plain(kLength);
    std::minstd_rand random(7);
    for (std::uint8_t& byte : plain)
      byte = static_cast<std::uint8_t>(random() >> 8);
    const Bytes chunk = test::raw_block_chunk(plain, blocksize);
    test::FrameBuilder builder;
    builder.blocksize = told;
    builder.chunksize = static_cast<std::int32_t>(kLength);
    builder.nbytes = kCount * static_cast<std::int64_t>(kLength);
    std::vector<std::int64_t> index;
    for (std::int64_t i = 0; i < kCount; ++i) {
      index.push_back(i * static_cast<std::int64_t>(chunk.size()));
      builder.chunk_section.insert(builder.chunk_section.end(), chunk.begin(), chunk.end());
    }
    builder.index = test::plain_index(index);
    stored = chunk.size();
    source = std::make_shared<ServedSource>(builder.build());
    auto opened = frame::open_cframe(source, std::make_shared<frame::IndexCache>());
    EXPECT_TRUE(opened) << describe(opened.error());
    container = *opened;
  }

  /// What is requested to open a chunk, as ranges of the chunk, and the chunk.
  std::pair<std::vector<ByteRange>, std::shared_ptr<const frame::ChunkReader>> open(
      std::int64_t chunk, const std::optional<ByteRange>& soon) const {
    const std::uint64_t begin = container->locate_chunk(ChunkNumber{chunk})->offset.value;
    source->requested.clear();
    auto reader = frame::ChunkReader::open(*container, ChunkNumber{chunk}, soon);
    EXPECT_TRUE(reader) << describe(reader.error());
    std::vector<ByteRange> ranges;
    for (const ByteRange& range : source->requested)
      ranges.push_back({range.begin - begin, range.end - begin});
    return {ranges, *reader};
  }

  std::uint64_t stored = 0;
  std::shared_ptr<ServedSource> source;
  std::shared_ptr<const frame::Container> container;
};

constexpr ByteRange kSoon{500'000, 504'096};

std::uint64_t sum_of(const std::vector<ByteRange>& ranges) {
  std::uint64_t sum = 0;
  for (const ByteRange& range : ranges)
    sum += range.size();
  return sum;
}

void expect_whole_request(const ServedFrame& frame, std::int64_t chunk, const std::optional<ByteRange>& soon) {
  const auto [ranges, reader] = frame.open(chunk, soon);
  ASSERT_EQ(ranges.size(), 1U);
  EXPECT_EQ(ranges[0].begin, 0U);
  EXPECT_EQ(ranges[0].end, frame.stored);
}

/// Expects that the blocks of kSoon and the block starts are requested, and little else.
void expect_narrow_request(const ServedFrame& frame, std::int64_t chunk) {
  const auto [ranges, reader] = frame.open(chunk, kSoon);
  EXPECT_LE(ranges.size(), 2U);
  EXPECT_LT(sum_of(ranges), frame.stored / 4);
  const auto& decoder = reader->decoder();
  const auto is_requested = [&asked = ranges](const ByteRange& wanted) {
    return std::any_of(asked.begin(), asked.end(),
                       [&](const ByteRange& range) { return range.begin <= wanted.begin && wanted.end <= range.end; });
  };
  EXPECT_TRUE(is_requested({0, codec::ChunkDecoder::tables_size(decoder.header())}));
  for (std::uint32_t block = 0; block < decoder.block_count(); ++block) {
    const ByteRange plain = decoder.block_range(block);
    if (plain.begin < kSoon.end && kSoon.begin < plain.end) {
      EXPECT_TRUE(is_requested(decoder.stored_range(block)));
    }
  }
}

TEST(ChunkRequests, FewReadersGetAShortChunkWhole) {
  expect_whole_request(ServedFrame(50'000, 50'000), 1, kSoon);
}

TEST(ChunkRequests, ManyReadersGetTheBlocksThatTheyRead) {
  const ServedFrame frame(50'000, 50'000);
  frame.source->busy = true;
  for (std::int64_t chunk = 0; chunk < ServedFrame::kCount; ++chunk)
    expect_narrow_request(frame, chunk);
}

TEST(ChunkRequests, ABlockSizeThatTheFrameDoesNotTellIsThatOfAnotherChunk) {
  const ServedFrame frame(50'000, 0);
  frame.source->busy = true;
  expect_whole_request(frame, 2, kSoon);
  expect_narrow_request(frame, 1);
}

TEST(ChunkRequests, WhatManyReadersDoNotTellIsFetchedWhole) {
  const ServedFrame frame(50'000, 50'000);
  frame.source->busy = true;
  expect_whole_request(frame, 1, std::nullopt);
}

TEST(ChunkRequests, AChunkOfOneBlockIsFetchedWhole) {
  const ServedFrame frame(ServedFrame::kLength, ServedFrame::kLength);
  frame.source->busy = true;
  expect_whole_request(frame, 1, kSoon);
}

TEST(ChunkRequests, AtTheEndsOfAChunkTheRangesStayInIt) {
  const ServedFrame frame(50'000, 50'000);
  frame.source->busy = true;
  for (const ByteRange part : {ByteRange{0, 4096}, ByteRange{ServedFrame::kLength - 4096, ServedFrame::kLength},
                               ByteRange{ServedFrame::kLength, ServedFrame::kLength}}) {
    const auto [ranges, reader] = frame.open(1, part);
    for (const ByteRange& range : ranges) {
      EXPECT_LE(range.begin, range.end);
      EXPECT_LE(range.end, frame.stored);
    }
    EXPECT_LT(sum_of(ranges), frame.stored / 4);
  }
}

TEST(ChunkRequests, SourcesTellWhetherTheOnesThatTheyReadFromAreBusy) {
  for (const bool busy : {false, true}) {
    const auto served = [busy] {
      auto source = std::make_unique<ServedSource>(Bytes(100));
      source->busy = busy;
      return source;
    };
    EXPECT_EQ(frame::OverlaySource({}, served()).is_busy(), busy);
    EXPECT_EQ(frame::range_source(served(), FileOffset{10}, 50)->is_busy(), busy);
    EXPECT_EQ(std::make_shared<frame::ReadRecord>()->watch(served())->is_busy(), busy);
  }
}

}  // namespace
}  // namespace cframefs
