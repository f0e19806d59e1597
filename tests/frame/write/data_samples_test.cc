// Samples of data: from the whole of it, without zeros, of bounded size; errors of the reader pass through.
#include "frame/write/data_samples.h"

#include <algorithm>
#include <cstddef>

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;

/// Data of any size that are zeros outside [begin, end), with counters of what was read.
struct Sparse {
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  std::uint64_t bytes_read = 0;
  std::uint64_t reads = 0;

  frame::ReadBytes reader() {
    return [this](codec::ByteSpan into, std::uint64_t at) -> codec::Result<std::size_t> {
      ++reads;
      bytes_read += into.size();
      for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = at + i >= begin && at + i < end ? static_cast<std::uint8_t>(1 + (at + i) % 251) : 0;
      return into.size();
    };
  }
};

std::uint64_t total(const std::vector<frame::Sample>& samples) {
  std::uint64_t sum = 0;
  for (const frame::Sample& sample : samples)
    sum += sample.bytes.size();
  return sum;
}

TEST(DataSamples, ComeFromTheWholeOfTheData) {
  const std::uint64_t size = 1000 * kMiB;
  Sparse data{0, size};
  const auto samples = frame::take_samples(data.reader(), size);
  ASSERT_TRUE(samples);
  EXPECT_GE(samples->slices.size(), 16U);
  EXPECT_LT(samples->slices.front().offset, size / 10);
  EXPECT_GT(samples->slices.back().offset, size / 10 * 9);
  EXPECT_EQ(samples->runs.size(), 2U);
  EXPECT_LE(total(samples->slices), 544 * kMiB / 1024) << "two blocks of 256 KiB and what is cut off";
  EXPECT_LE(data.bytes_read, 3 * kMiB);
}

TEST(DataSamples, MeetBothOfTwoKindsThatAlternateWithTheirDistance) {
  const std::uint64_t size = 16 * kMiB;
  for (const std::uint64_t slices_apart : {1U, 2U, 3U, 4U}) {
    const std::uint64_t period = size / 32 * slices_apart;
    const auto is_first = [&](std::uint64_t at) { return at % period < period / 2; };
    const auto read = [&](codec::ByteSpan into, std::uint64_t at) -> codec::Result<std::size_t> {
      for (std::size_t i = 0; i < into.size(); ++i)
        into[i] = static_cast<std::uint8_t>((is_first(at + i) ? 0 : 100) + (at + i) % 50);
      return into.size();
    };
    const auto samples = frame::take_samples(read, size);
    ASSERT_TRUE(samples);
    const auto first = std::count_if(samples->slices.begin(), samples->slices.end(),
                                     [&](const frame::Sample& slice) { return is_first(slice.offset); });
    EXPECT_GE(first, 12) << slices_apart;
    EXPECT_LE(first, 20) << slices_apart;
  }
}

TEST(DataSamples, FindDataAmongZeros) {
  const std::uint64_t size = 1000 * kMiB;
  Sparse data{700 * kMiB + 12'345, 704 * kMiB};
  const auto samples = frame::take_samples(data.reader(), size);
  ASSERT_TRUE(samples);
  ASSERT_FALSE(samples->slices.empty());
  for (const frame::Sample& slice : samples->slices)
    EXPECT_FALSE(frame::repeats_one_value(slice.bytes));
  ASSERT_FALSE(samples->runs.empty());
  EXPECT_FALSE(frame::repeats_one_value(samples->runs.front().bytes));
  EXPECT_LE(data.bytes_read, 40 * kMiB) << "however long the zeros are";
}

TEST(DataSamples, OfOneValueThereAreNone) {
  Sparse data;
  const auto samples = frame::take_samples(data.reader(), std::uint64_t{1} << 60);
  ASSERT_TRUE(samples);
  EXPECT_TRUE(samples->slices.empty());
  EXPECT_TRUE(samples->runs.empty());
  EXPECT_LE(data.reads, 4000U);
}

TEST(DataSamples, OfSmallDataAreAllOfIt) {
  for (const std::size_t size : {1U, 2U, 100U, 65'536U}) {
    std::vector<std::uint8_t> bytes(size);
    for (std::size_t i = 0; i < size; ++i)
      bytes[i] = static_cast<std::uint8_t>(i);
    const frame::DataSamples samples = frame::samples_of(bytes);
    EXPECT_EQ(samples.head, bytes);
    if (size == 1) continue;  // repeats one value
    ASSERT_EQ(samples.slices.size(), 1U) << size;
    EXPECT_EQ(samples.slices.front().bytes, bytes);
    ASSERT_EQ(samples.runs.size(), 1U) << size;
    EXPECT_EQ(samples.runs.front().bytes, bytes);
  }
  EXPECT_TRUE(frame::samples_of({}).slices.empty());
}

TEST(DataSamples, OfAFileThatBecameShorter) {
  // The size was taken before another program cut the file.
  const frame::ReadBytes read = [](codec::ByteSpan into, std::uint64_t at) -> codec::Result<std::size_t> {
    const std::uint64_t left = at < 1'000'000 ? 1'000'000 - at : 0;
    const auto got = static_cast<std::size_t>(std::min<std::uint64_t>(into.size(), left));
    for (std::size_t i = 0; i < got; ++i)
      into[i] = static_cast<std::uint8_t>(at + i);
    return got;
  };
  const auto samples = frame::take_samples(read, 100 * kMiB);
  ASSERT_TRUE(samples);
  for (const frame::Sample& slice : samples->slices)
    EXPECT_FALSE(slice.bytes.empty());
}

TEST(DataSamples, AnErrorOfTheReaderIsReturned) {
  for (const std::uint64_t failing : {0U, 1U, 40U}) {
    std::uint64_t calls = 0;
    const frame::ReadBytes read = [&](codec::ByteSpan into, std::uint64_t) -> codec::Result<std::size_t> {
      if (calls++ == failing) return codec::io_error(EIO, "pread");
      return into.size();
    };
    EXPECT_FALSE(frame::take_samples(read, 100 * kMiB)) << failing;
  }
}

}  // namespace
}  // namespace cframefs::test
