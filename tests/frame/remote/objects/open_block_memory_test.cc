// The memory of the open blocks of a disk cache.
#include "frame/remote/objects/open_block_memory.h"

#include <algorithm>
#include <cstdint>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::frame {
namespace {

TEST(OpenBlockMemory, SeveralThreadsHaveMoreThanIsExpected) {
  constexpr std::size_t kBlock = 2200;
  constexpr std::size_t kExpected = 64;
  constexpr unsigned kThreads = 4;
  OpenBlockMemory memory(kExpected);
  std::vector<int> wrong(kThreads);
  const auto use = [&](unsigned thread) {
    const auto value = static_cast<std::uint8_t>(thread + 1);
    for (int round = 0; round < 3; ++round) {
      std::vector<std::uint8_t*> blocks(20 * kExpected);
      for (std::uint8_t*& block : blocks) {
        block = static_cast<std::uint8_t*>(memory.resource().allocate(kBlock));
        std::fill_n(block, kBlock, value);
      }
      for (std::uint8_t* block : blocks) {
        wrong[thread] += std::count(block, block + kBlock, value) == kBlock ? 0 : 1;
        memory.resource().deallocate(block, kBlock);
      }
    }
  };
  std::vector<std::thread> threads;
  for (unsigned thread = 0; thread < kThreads; ++thread)
    threads.emplace_back(use, thread);
  for (std::thread& thread : threads)
    thread.join();
  EXPECT_EQ(wrong, std::vector<int>(kThreads));
}

}  // namespace
}  // namespace cframefs::frame
