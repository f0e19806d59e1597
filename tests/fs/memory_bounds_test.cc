// What a filesystem holds in memory is bounded, and is given back when it is of no more use.
#include <fstream>
#include <string>

#include <malloc.h>
#include <unistd.h>

#include "tests/fs/written_filesystem.h"
#include "tests/support/frame_builder.h"
#include "tests/support/reading.h"

extern "C" {
void __asan_init() __attribute__((weak));
void __tsan_init() __attribute__((weak));
}

namespace cframefs::fs {
namespace {

class MemoryBounds : public WrittenFilesystem {};

TEST_F(MemoryBounds, BlocksOfStatesThatAreGoneLeaveTheCache) {
  constexpr std::size_t kBytes = 512 << 10;
  constexpr std::size_t kStep = 5000;
  std::string text;
  for (int i = 0; text.size() < kBytes; ++i)
    text += std::to_string(i) + " words of a file, ";
  text.resize(kBytes);
  auto created = create("f");
  ASSERT_TRUE(write(*created, 0, text));
  ASSERT_TRUE(close(std::move(created)));
  remount();
  const BlockCache& cache = filesystem_->read_path().cache();
  for (std::size_t change = 1; change <= 20; ++change) {
    auto handle = open("f");
    text[change * kStep] = '#';
    ASSERT_TRUE(write(*handle, change * kStep, "#"));
    ASSERT_TRUE(close(std::move(handle)));
    let_settle("f");
    auto reader = open("f", O_RDONLY);
    ASSERT_EQ(read(*reader), text);
    EXPECT_GE(cache.bytes(), kBytes / 2);
    // What the handle has read is the state of now; those before are gone.
    EXPECT_LE(cache.bytes(), 2 * kBytes) << "after " << change << " changes";
    filesystem_->files().release(std::move(reader));
  }
  EXPECT_EQ(cache.bytes(), 0U);
}

TEST_F(MemoryBounds, WhatIsKnownOfChunksIsBoundedForAllFilesTogether) {
  constexpr std::int64_t kChunks = 2048;
  constexpr std::uint64_t kGenerations = 128;
  const test::Bytes plain(kChunks * 16, 7);
  auto container = test::open_frame(test::plain_frame(plain, 16).build());
  ASSERT_TRUE(container);
  auto view = frame::make_view(std::move(*container), frame::ArrayForm::flat, false);
  ASSERT_TRUE(view);
  std::vector<std::shared_ptr<const FrameSnapshot>> generations;
  for (std::uint64_t id = 1; id <= kGenerations; ++id) {
    generations.push_back(
        std::make_shared<const FrameSnapshot>(id, frame::FileVersion{}, *view, "f", filesystem_->read_path().cache()));
  }
  std::vector<std::weak_ptr<const frame::ChunkReader>> readers;
  for (const auto& snapshot : generations) {
    for (std::int64_t chunk = 0; chunk < kChunks; ++chunk) {
      const auto reader = snapshot->reader(frame::ChunkNumber{chunk});
      ASSERT_TRUE(reader);
      readers.push_back(*reader);
    }
    // What was looked at last is still there.
    EXPECT_FALSE(readers.back().expired());
  }
  std::size_t all = 0;
  std::size_t kept = 0;
  for (const auto& weak : readers) {
    const auto reader = weak.lock();
    all += sizeof(frame::ChunkReader);
    if (reader) kept += reader->footprint();
  }
  EXPECT_GT(all, std::size_t{32} << 20);
  EXPECT_LE(kept, std::size_t{16} << 20);
  EXPECT_GE(kept, std::size_t{12} << 20);
}

/// Of this process.
std::uint64_t resident_bytes() {
  std::ifstream status("/proc/self/statm");
  std::uint64_t pages = 0;
  status >> pages >> pages;
  return pages * static_cast<std::uint64_t>(sysconf(_SC_PAGESIZE));
}

TEST_F(MemoryBounds, WhatNamesTookIsGivenBackWhenTheKernelForgetsThem) {
  if (&__asan_init != nullptr || &__tsan_init != nullptr) GTEST_SKIP() << "resident memory is that of the sanitizer";
  constexpr int kNames = 30'000;
  ASSERT_EQ(mkdir((directory_.path() / "names").c_str(), 0755), 0);
  for (int i = 0; i < kNames; ++i)
    ASSERT_EQ(mknod((directory_.path() / "names" / std::to_string(i)).c_str(), S_IFIFO | 0600, 0), 0);
  const auto names = filesystem_->names().lookup(kRootNode, "names");
  ASSERT_TRUE(names);
  malloc_trim(0);  // what other tests have left
  const std::uint64_t before = resident_bytes();
  std::vector<NodeId> nodes;
  for (int i = 0; i < kNames; ++i) {
    const auto found = filesystem_->names().lookup(names->node, std::to_string(i));
    ASSERT_TRUE(found);
    nodes.push_back(found->node);
  }
  const std::uint64_t most = resident_bytes() - before;
  EXPECT_GE(most, kNames * sizeof(Node));
  // Every thousandth stays: what lies between them is given back all the same.
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (i % 1000 != 0) filesystem_->names().forget(nodes[i], 1);
  }
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(20);
  while (resident_bytes() > before + most / 4 && std::chrono::steady_clock::now() < end)
    std::this_thread::sleep_for(std::chrono::milliseconds(5));
  EXPECT_LE(resident_bytes(), before + most / 4) << "of " << most;
}

}  // namespace
}  // namespace cframefs::fs
