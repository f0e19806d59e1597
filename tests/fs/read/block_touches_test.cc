// BlockTouches: when a block is filled, when that is regretted, and how much memory the counters take.
#include "fs/read/block_touches.h"

#include <atomic>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kTouched = std::uint64_t{128} << 10;
constexpr std::uint64_t kTouchedFile = 1000 * kTouched;

/// Notes `count` requests; returns how many of them fill the block.
int fillings(BlockTouches& touches, std::uint64_t block, std::uint64_t count) {
  int filled = 0;
  for (std::uint64_t i = 0; i < count; ++i)
    filled += touches.note(block * kTouched) ? 1 : 0;
  return filled;
}

/// Has each of the blocks filled, and regretted.
void regret(BlockTouches& touches, std::uint64_t blocks) {
  for (std::uint64_t block = 0; block < blocks; ++block)
    EXPECT_EQ(fillings(touches, block, BlockTouches::kWanted + BlockTouches::kRegret), 1) << block;
}

TEST(BlockTouches, TheSecondRequestForABlockFillsIt) {
  BlockTouches touches(kTouchedFile);
  EXPECT_FALSE(touches.note(0));
  EXPECT_FALSE(touches.note(kTouched));
  EXPECT_TRUE(touches.note(0));
  EXPECT_TRUE(touches.note(kTouched));
  EXPECT_FALSE(touches.note(0));
}

TEST(BlockTouches, ARegrettedBlockMayBeFilledAgain) {
  BlockTouches touches(kTouchedFile);
  EXPECT_EQ(fillings(touches, 7, BlockTouches::kWanted + BlockTouches::kRegret), 1);
  EXPECT_EQ(fillings(touches, 7, BlockTouches::kWanted - 1), 0);
  EXPECT_EQ(fillings(touches, 7, 1), 1);
}

TEST(BlockTouches, AFileWhoseFillingsAreAllRegrettedPausesAndTriesAgain) {
  BlockTouches touches(kTouchedFile);
  regret(touches, BlockTouches::kFewRegrets);
  std::uint64_t ignored = 0;
  for (std::uint64_t block = 100; fillings(touches, block, 2) == 0; ++block)
    ignored += 2;
  EXPECT_EQ(ignored, BlockTouches::kPause);
}

TEST(BlockTouches, AFileWithFewRegretsDoesNotPause) {
  BlockTouches touches(kTouchedFile);
  const std::uint64_t good = 2 * BlockTouches::kFewRegrets;
  for (std::uint64_t block = 0; block < good; ++block)
    EXPECT_EQ(fillings(touches, 500 + block, 3), 1);
  regret(touches, BlockTouches::kFewRegrets);
  EXPECT_EQ(fillings(touches, 100, 2), 1);
}

TEST(BlockTouches, AFillingThatIsTakenBackIsWantedAgain) {
  BlockTouches touches(kTouchedFile);
  EXPECT_EQ(fillings(touches, 3, 2), 1);
  touches.forget(3 * kTouched);
  EXPECT_EQ(fillings(touches, 3, 2), 1);
}

TEST(BlockTouches, TheCountersOfAllFilesAreBounded) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 60;
  std::vector<std::unique_ptr<BlockTouches>> files;
  for (std::size_t i = 0; i < BlockTouches::kMaxMemory / BlockTouches::kMaxCounters; ++i) {
    files.push_back(std::make_unique<BlockTouches>(kHuge));
    EXPECT_EQ(fillings(*files.back(), 0, 2), 1);
  }
  BlockTouches further(kHuge);
  EXPECT_EQ(fillings(further, 0, 2), 0);
  files.pop_back();
  BlockTouches next(kHuge);
  EXPECT_EQ(fillings(next, kHuge / kTouched - 1, 2), 1);
}

TEST(BlockTouches, OneOfManyThreadsFillsABlock) {
  BlockTouches touches(kTouchedFile);
  std::atomic<int> filled{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i) {
    threads.emplace_back([&] {
      for (std::uint64_t block = 0; block < 1000; ++block)
        filled += touches.note(block * kTouched) ? 1 : 0;
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(filled, 1000);
}

}  // namespace
}  // namespace cframefs::fs
