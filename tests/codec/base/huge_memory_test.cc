// Memory in huge pages.
#include "codec/base/huge_memory.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <vector>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "codec/base/page_memory.h"

namespace cframefs::codec {
namespace {

constexpr std::size_t kHuge = std::size_t{2} << 20;

/// Returns whether the kernel knows MADV_POPULATE_WRITE: Linux 5.14.
bool populates(void* page) {
  constexpr int kPopulateWrite = 23;
  return madvise(page, page_size(), kPopulateWrite) == 0;
}

TEST(HugeMemory, HoldsWholeHugePagesThatAreResident) {
  for (const std::size_t size : {std::size_t{1}, kHuge - 1, kHuge, kHuge + 1}) {
    const HugeMemory memory(size);
    EXPECT_EQ(memory.size(), size > kHuge ? 2 * kHuge : kHuge);
    EXPECT_EQ(std::bit_cast<std::uintptr_t>(memory.data()) % kHuge, 0U);
    std::vector<unsigned char> resident(memory.size() / page_size());
    ASSERT_EQ(mincore(memory.data(), memory.size(), resident.data()), 0) << std::strerror(errno);
    const auto missing =
        std::count_if(resident.begin(), resident.end(), [](unsigned char page) { return page % 2 == 0; });
    EXPECT_TRUE(missing == 0 || !populates(memory.data())) << missing << " pages";
    std::memset(memory.data(), 1, memory.size());
  }
}

}  // namespace
}  // namespace cframefs::codec
