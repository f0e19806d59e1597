// UploadParts: what is written in any order of gaps comes out as parts, each byte once.
#include "frame/remote/publishing/upload_parts.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using frame::FileOffset;
using frame::UploadParts;

constexpr std::uint64_t kEqualPart = UploadParts::kLeastPart;
constexpr std::uint64_t kTebi = std::uint64_t{1} << 40;

std::vector<std::uint8_t> counted_bytes(std::uint64_t from, std::uint64_t count) {
  std::vector<std::uint8_t> bytes(count);
  for (std::uint64_t i = 0; i < count; ++i)
    bytes[i] = static_cast<std::uint8_t>((from + i) * 7 >> 4);
  return bytes;
}

void put_range(UploadParts& parts, std::uint64_t begin, std::uint64_t end) {
  const auto done = parts.write(counted_bytes(begin, end - begin), FileOffset{begin});
  ASSERT_TRUE(done) << done.error().reason;
}

bool is_counted(const std::string& bytes, std::uint64_t from) {
  const auto expected = counted_bytes(from, bytes.size());
  return std::equal(expected.begin(), expected.end(), bytes.begin(),
                    [](std::uint8_t byte, char c) { return byte == static_cast<std::uint8_t>(c); });
}

TEST(UploadParts, ShortObjectsAreOnePart) {
  UploadParts parts(0);
  put_range(parts, 100, 1000);
  EXPECT_FALSE(parts.take_rest());  // the begin is missing
  put_range(parts, 0, 100);
  EXPECT_FALSE(parts.take());
  EXPECT_FALSE(parts.has_several());
  EXPECT_EQ(parts.held(), 1000U);
  const auto rest = parts.take_rest();
  ASSERT_TRUE(rest && *rest);
  EXPECT_EQ((*rest)->number, 1U);
  EXPECT_EQ((*rest)->bytes.size(), 1000U);
  EXPECT_TRUE(is_counted((*rest)->bytes, 0));
  EXPECT_EQ(parts.held(), 0U);
  const auto none = parts.take_rest();
  ASSERT_TRUE(none);
  EXPECT_FALSE(*none);
}

TEST(UploadParts, AGapHoldsItsPartsBackAndTheFirstPartIsTheLast) {
  UploadParts parts(0);
  put_range(parts, 10, kEqualPart + 5);
  put_range(parts, kEqualPart + 5, 2 * kEqualPart - 3);
  EXPECT_FALSE(parts.take());
  put_range(parts, 2 * kEqualPart + 4, 4 * kEqualPart + 1);  // a gap over the end of the second part
  auto part = parts.take();
  ASSERT_TRUE(part);
  EXPECT_EQ(part->number, 4U);
  EXPECT_TRUE(is_counted(part->bytes, 3 * kEqualPart));
  EXPECT_FALSE(parts.take());
  put_range(parts, 2 * kEqualPart - 3, 2 * kEqualPart + 4);
  for (const std::uint32_t number : {2U, 3U}) {
    part = parts.take();
    ASSERT_TRUE(part);
    EXPECT_EQ(part->number, number);
    EXPECT_EQ(part->bytes.size(), kEqualPart);
    EXPECT_TRUE(is_counted(part->bytes, (number - 1) * kEqualPart));
  }
  put_range(parts, 0, 10);
  EXPECT_FALSE(parts.take());
  EXPECT_TRUE(parts.has_several());
  EXPECT_EQ(parts.length(), 4 * kEqualPart + 1);
  for (const std::uint32_t number : {5U, 1U}) {
    const auto rest = parts.take_rest();
    ASSERT_TRUE(rest && *rest);
    EXPECT_EQ((*rest)->number, number);
    EXPECT_TRUE(is_counted((*rest)->bytes, (number - 1) * kEqualPart));
  }
}

TEST(UploadParts, BytesAreNotWrittenTwice) {
  UploadParts parts(0);
  put_range(parts, 10, 20);
  put_range(parts, 3, 5);
  for (const auto& [begin, end] : {std::pair{10, 11}, {19, 25}, {2, 4}, {4, 6}, {0, 20}}) {
    const auto written = parts.write(counted_bytes(0, static_cast<std::uint64_t>(end - begin)),
                                     FileOffset{static_cast<std::uint64_t>(begin)});
    ASSERT_FALSE(written) << begin;
    EXPECT_EQ(written.error().kind, codec::ErrorKind::invalid);
  }
  put_range(parts, 0, 3);
  put_range(parts, 5, 10);
  const auto rest = parts.take_rest();
  ASSERT_TRUE(rest && *rest);
  EXPECT_TRUE(is_counted((*rest)->bytes, 0));
}

TEST(UploadParts, TenThousandPartsHoldFiveTebibytes) {
  for (const std::uint64_t expected : {std::uint64_t{0}, kTebi, 5 * kTebi}) {
    const UploadParts parts(expected);
    std::uint64_t sum = 0;
    for (std::uint32_t number = 1; number <= UploadParts::kMostParts; ++number) {
      const std::uint64_t size = parts.size_of(number);
      ASSERT_GE(size, std::uint64_t{5} << 20);
      ASSERT_LE(size, std::uint64_t{5} << 30);
      sum += size;
    }
    EXPECT_GE(sum, expected == 0 ? 5 * kTebi : expected + expected / 2);
  }
}

TEST(UploadParts, PartsAreEqualAsFarAsTheLengthIsExpected) {
  const std::uint64_t expected = 3 * kTebi;
  const UploadParts parts(expected);
  std::uint64_t sum = 0;
  for (std::uint32_t number = 1; sum < expected; ++number) {
    EXPECT_EQ(parts.size_of(number), parts.size_of(1));
    sum += parts.size_of(number);
  }
  EXPECT_EQ(UploadParts(std::uint64_t{70} << 30).size_of(1), kEqualPart);
}

}  // namespace
}  // namespace cframefs::test
