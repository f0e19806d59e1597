// The cache of index blocks: one bound for all owners, least recently used blocks are evicted first.
#include "frame/cframe/index_cache.h"

#include <thread>

#include <gtest/gtest.h>

namespace cframefs {
namespace {

using frame::IndexCache;

/// Gets a block of `entries` numbers; counts the loads.
struct Loader {
  IndexCache& cache;
  std::uint64_t owner = 0;
  int loads = 0;

  std::int64_t get(std::uint32_t block, std::size_t entries = 1000) {
    const auto got = cache.get(owner, block, [&]() -> codec::Result<IndexCache::Block> {
      ++loads;
      return std::make_shared<const std::vector<std::int64_t>>(entries, block);
    });
    return got ? (**got)[0] : -1;
  }
};

TEST(IndexCache, ABlockIsLoadedOnce) {
  IndexCache cache;
  Loader loader{cache, cache.new_owner()};
  for (int i = 0; i < 3; ++i)
    EXPECT_EQ(loader.get(5), 5);
  EXPECT_EQ(loader.loads, 1);
}

TEST(IndexCache, OwnersDoNotSeeEachOther) {
  IndexCache cache;
  Loader one{cache, cache.new_owner()};
  Loader two{cache, cache.new_owner()};
  EXPECT_NE(one.owner, two.owner);
  one.get(5);
  two.get(5);
  EXPECT_EQ(two.loads, 1);
}

TEST(IndexCache, NeverHoldsMoreThanItsBound) {
  IndexCache cache(100000);
  Loader loader{cache, cache.new_owner()};
  for (std::uint32_t block = 0; block < 100; ++block) {
    EXPECT_EQ(loader.get(block), block);
    EXPECT_LE(cache.bytes(), 100000U);
  }
  EXPECT_GT(cache.bytes(), 80000U);
}

TEST(IndexCache, EvictsTheLeastRecentlyUsedBlock) {
  IndexCache cache(35000);  // four blocks
  Loader loader{cache, cache.new_owner()};
  for (std::uint32_t block = 0; block < 4; ++block)
    loader.get(block);
  loader.get(0);
  loader.get(4);
  EXPECT_EQ(loader.loads, 5);
  loader.get(0);
  EXPECT_EQ(loader.loads, 5) << "0 was used after 1";
  loader.get(1);
  EXPECT_EQ(loader.loads, 6) << "1 was evicted";
}

TEST(IndexCache, ABlockLargerThanTheBoundIsNotCached) {
  IndexCache cache(35000);
  Loader loader{cache, cache.new_owner()};
  loader.get(0);
  EXPECT_EQ(loader.get(7, 100000), 7);
  EXPECT_LE(cache.bytes(), 35000U);
  loader.get(0);
  EXPECT_EQ(loader.loads, 2) << "and evicts nothing";
}

TEST(IndexCache, ForgettingAnOwnerFreesItsBlocksOnly) {
  IndexCache cache;
  Loader one{cache, cache.new_owner()};
  Loader two{cache, cache.new_owner()};
  for (std::uint32_t block = 0; block < 10; ++block)
    one.get(block);
  const std::size_t before = cache.bytes();
  two.get(0);
  cache.forget(one.owner);
  EXPECT_EQ(cache.bytes(), before / 10);
  two.get(0);
  EXPECT_EQ(two.loads, 1);
  cache.forget(two.owner);
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST(IndexCache, AFailedLoadIsNotRemembered) {
  IndexCache cache;
  const std::uint64_t owner = cache.new_owner();
  const auto failed =
      cache.get(owner, 0, []() -> codec::Result<IndexCache::Block> { return codec::io_error(EIO, "x"); });
  EXPECT_FALSE(failed);
  Loader loader{cache, owner};
  EXPECT_EQ(loader.get(0), 0);
}

TEST(IndexCache, ManyThreadsGetTheRightBlocks) {
  IndexCache cache(50000);
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&cache, &wrong, t] {
      Loader loader{cache, static_cast<std::uint64_t>(t % 2) + 100};
      for (std::uint32_t i = 0; i < 5000; ++i) {
        if (loader.get((i * 7 + static_cast<std::uint32_t>(t)) % 20) != (i * 7 + static_cast<std::uint32_t>(t)) % 20) {
          ++wrong;
        }
        if (i % 1000 == 999) cache.forget(loader.owner);
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_LE(cache.bytes(), 50000U);
}

}  // namespace
}  // namespace cframefs
