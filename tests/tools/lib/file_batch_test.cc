// Many files on several threads: each is processed once, results come in order, large files are processed alone.
#include "tools/lib/file_batch.h"

#include <atomic>
#include <chrono>
#include <numeric>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tools/lib/piece_queue.h"
#include "tools/lib/progress.h"

namespace cframefs::test {
namespace {

constexpr std::uint64_t kLarge = std::uint64_t{1} << 30;

TEST(FileBatch, DeliversAllInOrder) {
  tools::FileBatch batch;
  batch.sizes.assign(500, 1);
  batch.workers = 4;
  std::vector<std::atomic<int>> runs(batch.sizes.size());
  std::vector<std::size_t> delivered;
  batch.run = [&](std::size_t file, unsigned workers) {
    EXPECT_EQ(workers, 1U);
    // Later files are done first.
    if (file % 7 == 0) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    ++runs[file];
  };
  batch.deliver = [&](std::size_t file) {
    EXPECT_EQ(runs[file].load(), 1);
    delivered.push_back(file);
  };
  batch.idle = [] {};
  tools::run_batch(batch, std::atomic<bool>(false));
  std::vector<std::size_t> wanted(batch.sizes.size());
  std::iota(wanted.begin(), wanted.end(), std::size_t{0});
  EXPECT_EQ(delivered, wanted);
}

TEST(FileBatch, LargeFilesTakeAllThreadsOneAfterTheOther) {
  tools::FileBatch batch;
  for (int i = 0; i < 20; ++i)
    batch.sizes.push_back(i % 2 == 0 ? kLarge : 1);
  batch.workers = 3;
  std::atomic<int> large = 0;
  std::atomic<int> most = 0;
  batch.run = [&](std::size_t file, unsigned workers) {
    EXPECT_EQ(workers, file % 2 == 0 ? 3U : 1U);
    if (file % 2 != 0) return;
    most = std::max(most.load(), ++large);
    std::this_thread::sleep_for(std::chrono::milliseconds(2));
    --large;
  };
  std::size_t delivered = 0;
  batch.deliver = [&](std::size_t) { ++delivered; };
  batch.idle = [] {};
  tools::run_batch(batch, std::atomic<bool>(false));
  EXPECT_EQ(most.load(), 1);
  EXPECT_EQ(delivered, batch.sizes.size());
}

TEST(FileBatch, StartsNoFurtherFileOnceStopped) {
  tools::FileBatch batch;
  batch.sizes.assign(1000, 1);
  batch.workers = 2;
  std::atomic<bool> stop = false;
  std::atomic<std::size_t> ran = 0;
  std::size_t delivered = 0;
  batch.run = [&](std::size_t file, unsigned) {
    ++ran;
    if (file == 10) stop = true;
  };
  batch.deliver = [&](std::size_t) { ++delivered; };
  batch.idle = [] {};
  tools::run_batch(batch, stop);
  EXPECT_LE(ran.load(), 12U);
  EXPECT_EQ(delivered, ran.load());
  tools::FileBatch none;
  none.idle = [] {};
  tools::run_batch(none, stop);
}

TEST(FileBatch, TheProgressOfOneFileIsCountedAndNotDrawn) {
  const std::atomic<bool> stop = false;
  std::atomic<std::uint64_t> all = 0;
  tools::StringOutput out;
  tools::StringOutput err;
  tools::ProgressShare share{all, 1000};
  tools::Io io{out, err, true, stop, nullptr, false, &share};
  double now = 0;
  tools::Progress progress(io, "packing", tools::Progress::Unit::bytes, [&] { return now += 10; });
  // Of 50 uncompressed bytes; the file has 1000.
  progress.update(10, 50);
  EXPECT_EQ(all.load(), 200U);
  progress.update(5, 50);
  progress.update(50, tools::Progress::kUnknown);
  EXPECT_EQ(all.load(), 200U);
  progress.update(70, 50);
  share.set(1);
  EXPECT_EQ(all.load(), 1000U);
  EXPECT_EQ(err.text, "");
}

TEST(PieceQueue, PassesAllBytesAndBoundsThem) {
  tools::PieceQueue queue(10);
  std::vector<std::uint8_t> got;
  std::thread reader([&] {
    for (auto piece = queue.pop(); !piece.empty(); piece = queue.pop())
      got.insert(got.end(), piece.begin(), piece.end());
  });
  std::vector<std::uint8_t> wanted;
  for (std::uint8_t i = 0; i < 200; ++i) {
    const std::vector<std::uint8_t> piece(i % 13 + 1U, i);
    wanted.insert(wanted.end(), piece.begin(), piece.end());
    EXPECT_TRUE(queue.push(piece));
  }
  queue.close();
  reader.join();
  EXPECT_EQ(got, wanted);
  EXPECT_FALSE(queue.push(std::vector<std::uint8_t>(1)));
  EXPECT_TRUE(queue.pop().empty());
}

}  // namespace
}  // namespace cframefs::test
