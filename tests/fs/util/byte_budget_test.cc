#include "fs/util/byte_budget.h"

#include <atomic>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kKibi = 1024;

TEST(ByteBudget, EveryDecodeRunsWithinTheBound) {
  // The lane of small decodes has a fifth.
  constexpr std::uint64_t kBound = 100 * kKibi;
  constexpr int kDecoders = 3;
  ByteBudget budget(5 * kBound, kDecoders);
  std::atomic<std::uint64_t> used{0};
  std::atomic<int> running{0};
  std::atomic<int> beyond{0};
  std::atomic<int> done{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 12; ++i) {
    threads.emplace_back([&, i] {
      for (int round = 0; round < 200; ++round) {
        // From a few that fit together to one that is larger than the bound.
        const std::uint64_t bytes = (1 + (i + round) % 12) * 10 * kKibi;
        const ByteBudget::Reservation share(budget, bytes);
        const int here = ++running;
        const std::uint64_t together = used.fetch_add(bytes) + bytes;
        if (here > kDecoders || (together > kBound && here > 1)) ++beyond;
        std::this_thread::yield();
        used -= bytes;
        --running;
        ++done;
      }
    });
  }
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(done.load(), 12 * 200);
  EXPECT_EQ(beyond.load(), 0);
}

TEST(ByteBudget, ASmallDecodeDoesNotWaitForALargeOne) {
  ByteBudget budget(1, 1);
  const ByteBudget::Reservation large(budget, std::uint64_t{8} << 20);
  const ByteBudget::Reservation small(budget, kKibi);
}

}  // namespace
}  // namespace cframefs::fs
