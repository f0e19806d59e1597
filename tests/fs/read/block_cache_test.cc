// The cache of decoded blocks: which thread loads, which ones wait, what is kept, and that the bound holds.
#include "fs/read/block_cache.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::size_t kCell = 64 << 10;
constexpr std::uint64_t kBound = std::uint64_t{64} << 20;
using Found = BlockCache::Found;

class BlockCacheTest : public ::testing::Test {
 protected:
  /// Loads a cell if it is absent, fills it with the low byte of its number, and serves it `times` times.
  Found touch(std::uint32_t number, int times = 0) {
    BlockCache::Lookup lookup = cache_.find({1, 0, number}, kCell);
    if (lookup.found == Found::load) {
      std::fill_n(lookup.pin.bytes().begin(), kCell, static_cast<std::uint8_t>(number));
      cache_.publish(lookup.pin);
    }
    EXPECT_EQ(lookup.pin.bytes()[kCell - 1], static_cast<std::uint8_t>(number));
    for (int i = 0; i < times; ++i)
      lookup.pin.note_served(kCell);
    return lookup.found;
  }

  BufferPool pool_;
  DecodingStatistics statistics_;
  BlockCache cache_{kBound, pool_, statistics_};
};

TEST_F(BlockCacheTest, TheFirstReaderLoadsAndTheSecondFindsTheCellReady) {
  EXPECT_EQ(touch(1), Found::load);
  EXPECT_EQ(touch(1), Found::ready);
  EXPECT_EQ(touch(2), Found::load);
}

TEST_F(BlockCacheTest, OthersWaitForTheLoader) {
  BlockCache::Lookup loader = cache_.find({1, 0, 0}, kCell);
  ASSERT_EQ(loader.found, Found::load);
  std::atomic<int> done{0};
  std::vector<std::thread> waiters;
  std::atomic<int> asked{0};
  for (int i = 0; i < 4; ++i) {
    waiters.emplace_back([&] {
      const BlockCache::Lookup other = cache_.find({1, 0, 0}, kCell);
      ++asked;
      EXPECT_EQ(other.found, Found::busy);
      EXPECT_TRUE(cache_.wait(other.pin));
      EXPECT_EQ(other.pin.bytes()[5], 7);
      ++done;
    });
  }
  while (asked < 4)
    std::this_thread::yield();
  EXPECT_EQ(done, 0);
  std::fill_n(loader.pin.bytes().begin(), kCell, std::uint8_t{7});
  cache_.publish(loader.pin);
  for (std::thread& waiter : waiters)
    waiter.join();
  EXPECT_EQ(done, 4);
}

TEST_F(BlockCacheTest, WaitersGetTheLoadersErrorAndTheNextReaderTriesAgain) {
  BlockCache::Lookup loader = cache_.find({1, 0, 0}, kCell);
  const BlockCache::Lookup other = cache_.find({1, 0, 0}, kCell);
  ASSERT_EQ(other.found, Found::busy);
  cache_.fail(std::move(loader.pin), codec::corrupt("bad block").value());
  const auto waited = cache_.wait(other.pin);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().reason, "bad block");
  EXPECT_EQ(touch(0), Found::load);
}

TEST_F(BlockCacheTest, ALoaderThatDropsItsPinHasFailed) {
  BlockCache::Lookup loader = cache_.find({1, 0, 0}, kCell);
  const BlockCache::Lookup other = cache_.find({1, 0, 0}, kCell);
  loader.pin.reset();
  EXPECT_FALSE(cache_.wait(other.pin));
  EXPECT_EQ(touch(0), Found::load);
  EXPECT_EQ(cache_.find({1, 0, 5}, kCell).found, Found::load);  // fails without a waiting thread
  EXPECT_EQ(touch(5), Found::load);
}

TEST_F(BlockCacheTest, ProbationGrowsForManyReadersInOrder) {
  // More cells that are half read than probation holds at first, and fewer than it can hold.
  constexpr std::uint32_t kReaders = 200;
  int loads = 0;
  const auto read_half = [&](std::uint32_t number) {
    BlockCache::Lookup lookup = cache_.find({1, 0, number}, kCell);
    if (lookup.found == Found::load) {
      ++loads;
      cache_.publish(lookup.pin);
    }
    lookup.pin.note_served(kCell / 2);
  };
  constexpr std::uint32_t kRounds = 6;
  for (std::uint32_t round = 0; round < kRounds; ++round) {
    loads = 0;
    for (const int half : {0, 1}) {
      SCOPED_TRACE(half);
      for (std::uint32_t reader = 0; reader < kReaders; ++reader)
        read_half(reader * kRounds + round);
    }
  }
  EXPECT_EQ(loads, static_cast<int>(kReaders));
}

TEST_F(BlockCacheTest, ProbationDoesNotGrowForSmallReads) {
  constexpr std::uint32_t kCells = 200;
  const auto read_little = [&](std::uint64_t snapshot) {
    for (std::uint32_t number = 0; number < kCells; ++number) {
      BlockCache::Lookup lookup = cache_.find({snapshot, 0, number}, kCell);
      if (lookup.found == Found::load) cache_.publish(lookup.pin);
      lookup.pin.note_served(kCell / 16);
    }
  };
  read_little(1);
  const std::uint64_t probation = cache_.bytes();
  EXPECT_LT(probation, kCells * kCell);
  read_little(1);
  read_little(1);
  cache_.drop(1);
  read_little(2);
  EXPECT_EQ(cache_.bytes(), probation);
}

TEST_F(BlockCacheTest, ThreeBypassesLeaveNothingBehindAndTheFourthReadIsKept) {
  for (int i = 0; i < 3; ++i) {
    BlockCache::Lookup lookup = cache_.find_or_bypass({1, 0, 0}, kCell);
    ASSERT_EQ(lookup.found, Found::bypass);
    EXPECT_FALSE(cache_.finish_bypass(lookup.pin, kCell));
    EXPECT_FALSE(lookup.pin);
    EXPECT_EQ(cache_.bytes(), 0U);
  }
  BlockCache::Lookup last = cache_.find_or_bypass({1, 0, 0}, kCell);
  ASSERT_EQ(last.found, Found::load);
  cache_.publish(last.pin);
  EXPECT_EQ(cache_.find_or_bypass({1, 0, 0}, kCell).found, Found::ready);
}

TEST_F(BlockCacheTest, AReaderDuringABypassGetsTheWholeCell) {
  BlockCache::Lookup first = cache_.find_or_bypass({1, 0, 0}, kCell);
  ASSERT_EQ(first.found, Found::bypass);
  const BlockCache::Lookup other = cache_.find_or_bypass({1, 0, 0}, kCell);
  ASSERT_EQ(other.found, Found::busy);
  EXPECT_FALSE(cache_.find_to_load({1, 0, 0}, kCell));
  ASSERT_TRUE(cache_.finish_bypass(first.pin, kCell));
  ASSERT_EQ(first.pin.bytes().size(), kCell);
  std::fill_n(first.pin.bytes().begin(), kCell, std::uint8_t{7});
  cache_.publish(first.pin);
  ASSERT_TRUE(cache_.wait(other.pin));
  EXPECT_EQ(other.pin.bytes()[5], 7);
}

TEST_F(BlockCacheTest, ABypassThatFailsFailsTheWaitersAndIsForgotten) {
  BlockCache::Lookup first = cache_.find_or_bypass({1, 0, 0}, kCell);
  const BlockCache::Lookup other = cache_.find({1, 0, 0}, kCell);
  cache_.fail(std::move(first.pin), codec::corrupt("bad block").value());
  EXPECT_FALSE(cache_.wait(other.pin));
  {
    BlockCache::Lookup dropped = cache_.find_or_bypass({1, 0, 0}, kCell);
    ASSERT_EQ(dropped.found, Found::bypass);
  }
  EXPECT_EQ(touch(0), Found::load);
}

TEST_F(BlockCacheTest, PrefetchSkipsCellsThatAreReadyOrLoading) {
  BlockCache::Pin pin = cache_.find_to_load({1, 0, 0}, kCell);
  ASSERT_TRUE(pin);
  EXPECT_FALSE(cache_.find_to_load({1, 0, 0}, kCell));
  cache_.publish(pin);
  EXPECT_FALSE(cache_.find_to_load({1, 0, 0}, kCell));
  EXPECT_EQ(cache_.find({1, 0, 0}, kCell).found, Found::ready);
}

TEST_F(BlockCacheTest, AScanDoesNotMakeTheCacheGrow) {
  for (std::uint32_t i = 0; i < 4000; ++i)
    touch(i, 1);
  EXPECT_LE(cache_.bytes(), std::uint64_t{16} << 20);
}

TEST_F(BlockCacheTest, CellsThatAreReadRepeatedlyStay) {
  // 32 MiB, read repeatedly before a scan.
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 512; ++i)
      touch(i);
  }
  for (std::uint32_t i = 10'000; i < 14'000; ++i)
    touch(i, 1);
  int kept = 0;
  for (std::uint32_t i = 0; i < 512; ++i)
    kept += touch(i) == Found::ready ? 1 : 0;
  EXPECT_GE(kept, 480);
}

TEST_F(BlockCacheTest, TheBoundHoldsForAnyAccess) {
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t i = 0; i < 3000; ++i) {
      touch(i);
      ASSERT_LE(cache_.bytes() + pool_.idle_bytes(), kBound);
    }
  }
}

TEST_F(BlockCacheTest, ACellLargerThanTheBoundLeavesAFewSmallOnes) {
  for (int round = 0; round < 3; ++round) {
    for (std::uint32_t i = 0; i < 64; ++i)
      touch(i);
  }
  for (std::int64_t chunk = 1; chunk < 4; ++chunk) {
    BlockCache::Lookup huge = cache_.find({1, chunk, 0}, 2 * kBound);
    ASSERT_EQ(huge.found, Found::load);
    for (std::uint32_t i = 0; i < 64; ++i)
      EXPECT_EQ(touch(i), Found::ready) << i;
    cache_.publish(huge.pin);
    // Other cells are not kept for long.
    for (std::uint32_t i = 1000; i < 3000; ++i) {
      touch(i);
      ASSERT_LE(cache_.bytes(), 2 * kBound + (std::uint64_t{8} << 20) + kCell);
    }
    for (int round = 0; round < 3; ++round) {
      for (std::uint32_t i = 0; i < 64; ++i)
        touch(i);
    }
  }
  EXPECT_LE(cache_.bytes(), kBound);
}

TEST_F(BlockCacheTest, TheLeastRecentlyUsedOfSmallAndLargeCellsAreEvicted) {
  constexpr std::size_t kLarge = std::size_t{5} << 20;
  const auto touch_large = [&](std::int64_t chunk) {
    const BlockCache::Lookup lookup = cache_.find({1, chunk, 0}, kLarge);
    if (lookup.found == Found::load) cache_.publish(lookup.pin);
    return lookup.found;
  };
  for (std::int64_t chunk = 1; chunk < 60; ++chunk) {
    touch_large(chunk);
    for (std::uint32_t i = 0; i < 64; ++i)
      touch(i);
    ASSERT_LE(cache_.bytes() + pool_.idle_bytes(), kBound);
  }
  for (std::uint32_t i = 0; i < 64; ++i)
    EXPECT_EQ(touch(i), Found::ready) << i;
  EXPECT_EQ(touch_large(2), Found::load);
  // Small cells that are read repeatedly, as many as there is room for, evict large ones that are not.
  for (int round = 0; round < 4; ++round) {
    for (std::uint32_t i = 0; i < 900; ++i)
      touch(i);
  }
  EXPECT_EQ(touch(5), Found::ready);
  EXPECT_EQ(touch_large(59), Found::load);
}

TEST_F(BlockCacheTest, DroppingASnapshotRemovesItsCells) {
  for (std::uint32_t i = 0; i < 100; ++i)
    touch(i, static_cast<int>(i % 2));
  BlockCache::Lookup other = cache_.find({2, 0, 0}, kCell);
  cache_.publish(other.pin);
  BlockCache::Lookup sent = cache_.find({1, 0, 7}, kCell);
  ASSERT_EQ(sent.found, Found::ready);
  cache_.drop(1);
  // A cell that is being sent stays until its pin is gone.
  EXPECT_EQ(cache_.bytes(), 2 * kCell);
  EXPECT_EQ(sent.pin.bytes()[kCell - 1], 7);
  sent.pin.reset();
  EXPECT_EQ(cache_.bytes(), kCell);
  other.pin.reset();
  EXPECT_EQ(cache_.find({2, 0, 0}, kCell).found, Found::ready);
  EXPECT_EQ(touch(7), Found::load);
  cache_.drop(1);
  cache_.drop(2);
  cache_.drop(3);
  EXPECT_EQ(cache_.bytes(), 0U);
}

TEST_F(BlockCacheTest, IdleBuffersAreBounded) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 100; ++i)
    buffers.push_back(pool_.get(1 << 20));
  buffers.clear();
  EXPECT_LE(pool_.idle_bytes(), std::size_t{32} << 20);
  EXPECT_GE(pool_.idle_bytes(), std::size_t{31} << 20);
}

TEST_F(BlockCacheTest, TheBoundCoversIdleBuffers) {
  std::vector<Buffer> buffers;
  for (int i = 0; i < 32; ++i)
    buffers.push_back(pool_.get(1 << 20));
  std::vector<BlockCache::Lookup> held;
  for (std::uint32_t i = 0; i < (kBound - (std::uint64_t{3} << 20)) / kCell; ++i)
    held.push_back(cache_.find({1, 0, i}, kCell));
  // Buffers of other threads, which ask for no cell.
  buffers.clear();
  EXPECT_EQ(pool_.idle_bytes(), std::size_t{3} << 20);
  EXPECT_EQ(cache_.bytes() + pool_.idle_bytes(), kBound);
}

TEST_F(BlockCacheTest, ManyThreadsDecodeEachCellOnceWhileItIsHeld) {
  constexpr std::uint32_t kCells = 64;
  std::vector<std::atomic<int>> loads(kCells);
  std::vector<std::thread> threads;
  for (unsigned t = 0; t < 8; ++t) {
    threads.emplace_back([&, t] {
      for (std::uint32_t i = 0; i < 20 * kCells; ++i) {
        const std::uint32_t number = (i * 7 + t * 13) % kCells;
        BlockCache::Lookup lookup = cache_.find({2, 0, number}, kCell);
        if (lookup.found == Found::load) {
          ++loads[number];
          std::fill_n(lookup.pin.bytes().begin(), kCell, static_cast<std::uint8_t>(number));
          cache_.publish(lookup.pin);
        } else if (lookup.found == Found::busy) {
          ASSERT_TRUE(cache_.wait(lookup.pin));
        }
        ASSERT_EQ(lookup.pin.bytes()[number], static_cast<std::uint8_t>(number));
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  // 4 MiB in all, fewer than probation holds: so no cell is decoded twice.
  for (const std::atomic<int>& count : loads)
    EXPECT_EQ(count, 1);
}

}  // namespace
}  // namespace cframefs::fs
