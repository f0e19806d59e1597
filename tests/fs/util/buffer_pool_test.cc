#include "fs/util/buffer_pool.h"

#include <vector>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::size_t kMebi = 1 << 20;
constexpr std::size_t kMaxIdle = 32 * kMebi;

TEST(BufferPool, ReusesABufferOfTheSameLength) {
  BufferPool pool;
  const std::uint8_t* const memory = pool.get(kMebi).bytes().data();
  EXPECT_EQ(pool.idle_bytes(), kMebi);
  EXPECT_EQ(pool.fresh_bytes(kMebi), 0U);
  EXPECT_EQ(pool.get(kMebi).bytes().data(), memory);
}

TEST(BufferPool, LengthsThatAreNoLongerUsedMakeRoom) {
  BufferPool pool;
  // As a log grows, the buffers for its last chunk do.
  for (std::size_t length = kMebi / 2; length < 2 * kMebi; length += 4096)
    pool.get(length);
  EXPECT_LE(pool.idle_bytes(), kMaxIdle);
  EXPECT_EQ(pool.fresh_bytes(2 * kMebi - 4096), 0U) << "the last one is kept";
  pool.get(3 * kMebi);
  EXPECT_EQ(pool.fresh_bytes(3 * kMebi), 0U);
  EXPECT_LE(pool.idle_bytes(), kMaxIdle);
}

TEST(BufferPool, KeepsNoMoreThanItsBound) {
  BufferPool pool;
  {
    std::vector<Buffer> buffers;
    for (std::size_t i = 0; i < 40; ++i)
      buffers.push_back(pool.get(kMebi));
  }
  EXPECT_EQ(pool.idle_bytes(), kMaxIdle);
  pool.get(2 * kMaxIdle);
  EXPECT_EQ(pool.idle_bytes(), kMaxIdle) << "what does not fit takes no other's place";
}

}  // namespace
}  // namespace cframefs::fs
