// Which chunks are encoded early, and by which thread.
#include "fs/write/chunk_encoders.h"

#include <atomic>
#include <cstdint>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::size_t kEarlyChunk = 4096;

class ChunkEncodersTest : public testing::Test {
 protected:
  /// Returns a chunk of the file that waits to be encoded.
  void fill(ChunkEncoders::Owner file) {
    codec::EncodeParameters parameters;
    parameters.clevel = 1;
    auto chunk = std::make_shared<DirtyChunk>(pool_, kEarlyChunk, counter_);
    chunk->hold(kEarlyChunk, kEarlyChunk);
    encoders_.encode_early(file, parameters, chunk);
    chunks_.push_back(std::move(chunk));
  }
  std::uint64_t encoded() const { return statistics_.chunks_encoded.load(); }

  BufferPool pool_;
  std::atomic<std::uint64_t> counter_{0};
  WritingStatistics statistics_;
  WorkerPool workers_;  // never started: only writers encode
  ChunkEncoders encoders_{workers_, 1, statistics_};
  std::vector<DirtyLayer::Chunk> chunks_;
  const int one_ = 1;
  const int other_ = 2;
};

TEST_F(ChunkEncodersTest, AWriterEncodesOnlyChunksOfItsOwnFile) {
  for (int i = 0; i < 20; ++i)
    fill(&one_);
  fill(&other_);
  encoders_.drain_to(&other_, 1);
  EXPECT_EQ(encoded(), 0U) << "the file has only one chunk waiting";
  encoders_.drain_to(&other_, 0);
  EXPECT_EQ(encoded(), 1U);
  encoders_.drain_to(&one_, 16);
  EXPECT_EQ(encoded(), 5U);
}

TEST_F(ChunkEncodersTest, ChunksThatAreGoneAreNotEncoded) {
  fill(&one_);
  fill(&one_);
  chunks_.erase(chunks_.begin());
  encoders_.drain_to(&one_, 0);
  EXPECT_EQ(encoded(), 1U);
}

}  // namespace
}  // namespace cframefs::fs
