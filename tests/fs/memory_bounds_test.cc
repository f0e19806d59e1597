// What a filesystem holds in memory is bounded, and is given back when it is of no more use.
#include <string>

#include "tests/fs/written_filesystem.h"

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
  const BlockCache& cache = filesystem_->route().cache();
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
    filesystem_->release(std::move(reader));
  }
  EXPECT_EQ(cache.bytes(), 0U);
}

}  // namespace
}  // namespace cframefs::fs
