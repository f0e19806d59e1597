// CopyMemory: one bound for all copies, and no copy waits long for it.
#include "fs/write/copy_memory.h"

#include <chrono>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

TEST(CopyMemory, ACopyTakesAndReturnsItsReservation) {
  CopyMemory memory;
  {
    CopyMemory::Reservation share(memory, 100, 60);
    EXPECT_EQ(share.bytes(), 60U);
    EXPECT_EQ(memory.held(), 60U);
    share.settle(70);
    EXPECT_EQ(memory.held(), 70U);
    share.settle(10);
    EXPECT_EQ(memory.held(), 10U);
  }
  EXPECT_EQ(memory.held(), 0U);
}

TEST(CopyMemory, ACopyTakesAtMostTheBound) {
  CopyMemory memory;
  const CopyMemory::Reservation share(memory, 100, 1000);
  EXPECT_EQ(share.bytes(), 100U);
}

TEST(CopyMemory, ACopyDoesNotWaitForEverForMemoryThatOthersKeep) {
  CopyMemory memory;
  const CopyMemory::Reservation first(memory, 100, 60);
  const CopyMemory::Reservation second(memory, 100, 60);
  EXPECT_EQ(second.bytes(), 40U);
  const CopyMemory::Reservation third(memory, 100, 60);
  EXPECT_EQ(third.bytes(), 0U);
  EXPECT_EQ(memory.held(), 100U);
}

TEST(CopyMemory, ManyCopiesWaitForMemoryThatOthersKeepAtOnceAndNotInTurn) {
  CopyMemory memory;
  const CopyMemory::Reservation kept(memory, 100, 100);
  const auto begin = std::chrono::steady_clock::now();
  std::vector<std::thread> copies;
  for (int copy = 0; copy < 64; ++copy) {
    copies.emplace_back([&memory] {
      CopyMemory::Reservation share(memory, 100, 60);
      EXPECT_EQ(share.bytes(), 0U);
      share.settle(10);  // a chunk
    });
  }
  for (std::thread& copy : copies)
    copy.join();
  // In turn they would take 64 times as long as one.
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 32 * CopyMemory::kPatience);
}

TEST(CopyMemory, ManyCopiesHoldNoMoreThanTheBoundAtOnce) {
  CopyMemory memory;
  std::vector<std::thread> copies;
  for (int copy = 0; copy < 16; ++copy) {
    copies.emplace_back([&memory] {
      for (int part = 0; part < 50; ++part) {
        const CopyMemory::Reservation share(memory, 100, 60);
        EXPECT_LE(memory.held(), 100U);
      }
    });
  }
  for (std::thread& copy : copies)
    copy.join();
  EXPECT_EQ(memory.held(), 0U);
}

}  // namespace
}  // namespace cframefs::fs
