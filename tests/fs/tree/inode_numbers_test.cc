// Inode numbers of several filesystems: unique and stable.
#include "fs/tree/inode_numbers.h"

#include <map>
#include <set>
#include <utility>

#include <gtest/gtest.h>

namespace cframefs::fs {
namespace {

constexpr std::uint64_t kHome = 7;
constexpr std::uint64_t kBit = 1;

class InodeNumbersTest : public testing::Test {
 protected:
  InodeNumbersTest() { numbers_.set_home(kHome); }
  InodeNumbers numbers_;
};

TEST_F(InodeNumbersTest, TheSourcesOwnNumbersStay) {
  for (const std::uint64_t inode : {std::uint64_t{1}, std::uint64_t{12345}, kBit << 48, kBit << 60, kBit << 63})
    EXPECT_EQ(numbers_.shown(kHome, inode), inode);
}

TEST_F(InodeNumbersTest, EachFileHasANumberOfItsOwnThatStays) {
  const std::uint64_t inodes[] = {0,
                                  1,
                                  2,
                                  12345,
                                  (kBit << 48) - 1,
                                  kBit << 48,
                                  kBit << 61,
                                  kBit << 62,
                                  ~std::uint64_t{0},
                                  (kBit << 61) | 1,
                                  (kBit << 61) | (kBit << 48)};
  std::set<std::uint64_t> seen;
  std::map<std::pair<std::uint64_t, std::uint64_t>, std::uint64_t> first;
  std::size_t files = 0;
  for (const std::uint64_t device : {kHome, std::uint64_t{0}, std::uint64_t{8}, std::uint64_t{9}, ~std::uint64_t{0}}) {
    for (const std::uint64_t inode : inodes) {
      const std::uint64_t shown = numbers_.shown(device, inode);
      first[{device, inode}] = shown;
      // A decoded view is another file than the raw one.
      seen.insert(shown);
      seen.insert(shown | InodeNumbers::kView);
      files += 2;
    }
  }
  EXPECT_EQ(seen.size(), files);
  for (const auto& [file, shown] : first)
    EXPECT_EQ(numbers_.shown(file.first, file.second), shown);
}

TEST_F(InodeNumbersTest, MoreFilesystemsThanIndexBitsGetDistinctNumbers) {
  constexpr std::uint64_t kMany = 10000;
  std::set<std::uint64_t> seen;
  for (std::uint64_t device = kHome; device < kHome + kMany; ++device) {
    seen.insert(numbers_.shown(device, 1));
    seen.insert(numbers_.shown(device, 2));
  }
  EXPECT_EQ(seen.size(), 2 * kMany);
}

}  // namespace
}  // namespace cframefs::fs
