#include "frame/remote/objects/remote_window.h"

#include <gtest/gtest.h>

namespace cframefs::frame::remote_window_tests {
namespace {

constexpr std::uint64_t kMiB = 1U << 20;
constexpr std::uint64_t kObject = 4096 * kMiB;

TEST(ReadAheadWindow, FetchesNothingAheadOfAFirstRead) {
  ReadAheadWindow window(64 * kMiB);
  EXPECT_TRUE(window.note({0, 4096}, kObject).empty());
}

TEST(ReadAheadWindow, DoublesForASequentialReaderUpToItsBound) {
  ReadAheadWindow window(16 * kMiB);
  std::uint64_t fetched = 0;
  std::uint64_t last = 0;
  for (std::uint64_t at = 0; at < 200 * kMiB; at += kMiB) {
    const ByteRange ahead = window.note({at, at + kMiB}, kObject);
    if (ahead.empty()) continue;
    EXPECT_TRUE(fetched == 0 || ahead.begin == fetched) << "a gap or an overlap at " << ahead.begin;
    fetched = ahead.end;
    EXPECT_LE(fetched, at + kMiB + 16 * kMiB);
    last = fetched - (at + kMiB);
  }
  EXPECT_EQ(last, 16 * kMiB);
  EXPECT_GE(fetched, 200 * kMiB);
}

TEST(ReadAheadWindow, IsFilledAgainInStepsSoThatTheLinkIsNeverIdle) {
  ReadAheadWindow window(24 * kMiB);
  std::uint64_t fetched = 0;
  for (std::uint64_t at = 0; at < 200 * kMiB; at += 100'000) {
    const ByteRange ahead = window.note({at, at + 100'000}, kObject);
    fetched = std::max(fetched, ahead.end);
    if (at < 40 * kMiB) continue;
    EXPECT_GE(fetched - at, 16 * kMiB) << "at " << at;
    EXPECT_TRUE(ahead.empty() || ahead.size() == ReadAheadWindow::kStep) << ahead.size();
  }
}

TEST(ReadAheadWindow, BeginsWithOneMiB) {
  ReadAheadWindow window(64 * kMiB);
  window.note({0, 4096}, kObject);
  EXPECT_EQ(window.note({4096, 8192}, kObject), (ByteRange{8192, 8192 + kMiB}));
  EXPECT_TRUE(window.note({8192, 12288}, kObject).empty());
}

TEST(ReadAheadWindow, KeepsItsStreamWhenAReaderSkipsInsideTheWindow) {
  ReadAheadWindow window(64 * kMiB);
  std::uint64_t fetched = 0;
  for (std::uint64_t at = 0; at < 32 * kMiB; at += kMiB)
    fetched = std::max(fetched, window.note({at, at + kMiB}, kObject).end);
  const ByteRange after_skip = window.note({fetched - kMiB, fetched}, kObject);
  EXPECT_EQ(after_skip.begin, fetched) << "the skip ended the stream, or fetched again what is there";
  EXPECT_GE(after_skip.size(), 16 * kMiB);
}

TEST(ReadAheadWindow, FetchesNothingAheadOfARandomReaderThatLooksAtEachPlaceTwice) {
  ReadAheadWindow window(64 * kMiB);
  for (std::uint64_t i = 1; i < 20; ++i) {
    const std::uint64_t at = i * 37 % 101 * kMiB;
    EXPECT_TRUE(window.note({at, at + 32}, kObject).empty());
    EXPECT_TRUE(window.note({at, at + 500'000}, kObject).empty());
  }
}

TEST(ReadAheadWindow, FollowsAReaderThatLooksAtTheHeaderOfEachChunk) {
  ReadAheadWindow window(64 * kMiB);
  unsigned ahead = 0;
  for (std::uint64_t at = 0; at < 40 * kMiB; at += kMiB) {
    ahead += window.note({at, at + 32}, kObject).empty() ? 0 : 1;
    ahead += window.note({at, at + kMiB}, kObject).empty() ? 0 : 1;
  }
  EXPECT_GE(ahead, 5U);
}

TEST(ReadAheadWindow, StopsAtTheEndOfTheObject) {
  ReadAheadWindow window(64 * kMiB);
  window.note({0, kMiB}, 2 * kMiB + 5);
  EXPECT_EQ(window.note({kMiB, 2 * kMiB}, 2 * kMiB + 5), (ByteRange{2 * kMiB, 2 * kMiB + 5}));
  EXPECT_TRUE(window.note({2 * kMiB, 2 * kMiB + 5}, 2 * kMiB + 5).empty());
}

TEST(ReadAheadWindow, IsOffAfterFourScatteredReadsUntilAReaderIsSequentialAgain) {
  ReadAheadWindow window(64 * kMiB);
  for (const std::uint64_t at : {900 * kMiB, 100 * kMiB, 700 * kMiB, 300 * kMiB})
    EXPECT_TRUE(window.note({at, at + 4096}, kObject).empty());
  // One neighbour by chance.
  EXPECT_TRUE(window.note({300 * kMiB + 4096, 300 * kMiB + 8192}, kObject).empty());
  EXPECT_TRUE(window.note({300 * kMiB + 8192, 300 * kMiB + 12288}, kObject).empty());
  EXPECT_FALSE(window.note({300 * kMiB + 12288, 300 * kMiB + 16384}, kObject).empty());
}

TEST(ReadAheadWindow, FollowsSeveralReadersOfOneObject) {
  ReadAheadWindow window(64 * kMiB);
  unsigned ahead = 0;
  for (std::uint64_t step = 0; step < 8; ++step) {
    for (const std::uint64_t base : {0 * kMiB, 1000 * kMiB, 2000 * kMiB})
      ahead += window.note({base + step * kMiB, base + (step + 1) * kMiB}, kObject).empty() ? 0 : 1;
  }
  EXPECT_GE(ahead, 9U);
}

TEST(ReadAheadWindow, AsksAgainForWhatWasRefused) {
  ReadAheadWindow window(64 * kMiB);
  window.note({0, kMiB}, kObject);
  const ByteRange refused = window.note({kMiB, 2 * kMiB}, kObject);
  window.cut(refused, refused.begin);
  EXPECT_EQ(window.note({2 * kMiB, 3 * kMiB}, kObject).begin, 3 * kMiB);
}

}  // namespace
}  // namespace cframefs::frame::remote_window_tests
