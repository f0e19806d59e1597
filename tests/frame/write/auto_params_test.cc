// The parameters chosen for new frames: typesize, filters and block size by trial compression, and chunk size.
#include "frame/write/auto_params.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

#include "codec/format/filter_registry.h"

namespace cframefs::test {
namespace {

using codec::EncodeParameters;

EncodeParameters shuffled() {
  EncodeParameters parameters;
  parameters.filters[5] = static_cast<std::uint8_t>(codec::FilterId::shuffle);
  return parameters;
}

EncodeParameters open_typesize(EncodeParameters parameters) {
  parameters.typesize = 0;
  return parameters;
}

std::int32_t typesize_of(const std::vector<std::uint8_t>& sample, const EncodeParameters& parameters = shuffled()) {
  codec::EncodeContext context;
  return frame::choose_frame(context, open_typesize(parameters), 0, frame::samples_of(sample)).encode.typesize;
}

/// Returns what is chosen if typesize, filters and block size are open.
EncodeParameters chosen_for(const std::vector<std::uint8_t>& bytes, const EncodeParameters& parameters = shuffled()) {
  codec::EncodeContext context;
  const auto samples = frame::samples_of(bytes);
  return frame::choose_frame(context, open_typesize(parameters), 0, samples, frame::Filters::open).encode;
}

codec::FilterSlots filters(const char* names) {
  return *codec::filters_named(names);
}

template <class T, class Value>
std::vector<std::uint8_t> values(std::size_t count, const Value& value) {
  std::vector<T> all(count);
  for (std::size_t i = 0; i < count; ++i)
    all[i] = static_cast<T>(value(i));
  std::vector<std::uint8_t> bytes(count * sizeof(T));
  std::memcpy(bytes.data(), all.data(), bytes.size());
  return bytes;
}

TEST(FrameChoice, TypesizeOfNumbers) {
  std::mt19937 random(1);
  const auto smooth = [](std::size_t i) { return 20.0 + std::sin(static_cast<double>(i) * 0.001); };
  EXPECT_EQ(typesize_of(values<double>(20'000, smooth)), 8);
  EXPECT_EQ(typesize_of(values<float>(20'000, smooth)), 4);
  std::uint64_t sum = 0;
  const auto counter = [&](std::size_t) { return sum += random() % 20; };
  EXPECT_EQ(typesize_of(values<std::uint32_t>(20'000, counter)), 4);
  EXPECT_EQ(typesize_of(values<std::uint64_t>(20'000, counter)), 8);
  EXPECT_EQ(typesize_of(values<std::int16_t>(20'000,
                                             [&](std::size_t i) {
                                               return 1000 * std::sin(static_cast<double>(i) * 0.01) +
                                                      static_cast<double>(random() % 16);
                                             })),
            2);
}

TEST(FrameChoice, TypesizeOfPixels) {
  std::mt19937 random(1);
  const auto pixel = [&](std::size_t i) { return (i % 3) * 80 + random() % 8; };
  EXPECT_EQ(typesize_of(values<std::uint8_t>(90'000, pixel)) % 3, 0);
}

TEST(FrameChoice, TypesizeOneIfNoOtherIsBetter) {
  std::mt19937 random(1);
  EXPECT_EQ(typesize_of({}), 1);
  EXPECT_EQ(typesize_of({1, 2, 3}), 1);
  EXPECT_EQ(typesize_of(std::vector<std::uint8_t>(100'000)), 1);
  EXPECT_EQ(typesize_of(values<std::uint8_t>(100'000, [&](std::size_t) { return random(); })), 1);
  std::vector<std::uint8_t> text;
  while (text.size() < 100'000) {
    for (std::size_t letters = 1 + random() % 9; letters > 0; --letters)
      text.push_back(static_cast<std::uint8_t>('a' + random() % (1 + random() % 26)));
    text.push_back(' ');
  }
  EXPECT_EQ(chosen_for(text).typesize, 1);
  // Without a filter the typesize makes no difference.
  const auto smooth = [](std::size_t i) { return std::sin(static_cast<double>(i) * 0.001); };
  EXPECT_EQ(typesize_of(values<double>(20'000, smooth), EncodeParameters()), 1);
}

TEST(FrameChoice, TypesizeOfNumbersBehindZeros) {
  const auto smooth = [](std::size_t i) { return i < 300'000 ? 0 : 20.0 + std::sin(static_cast<double>(i) * 0.001); };
  EXPECT_EQ(typesize_of(values<double>(320'000, smooth)), 8);
}

TEST(FrameChoice, TypesizeOfANpyHeader) {
  std::mt19937 random(1);
  const auto with_header = [&](const std::string& descr) {
    std::string text = "{'descr': '" + descr + "', 'fortran_order': False, 'shape': (9000,), }";
    text.resize(117, ' ');
    std::vector<std::uint8_t> file = {0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, 118, 0};
    file.insert(file.end(), text.begin(), text.end());
    file.push_back('\n');
    for (int i = 0; i < 100'000; ++i)
      file.push_back(static_cast<std::uint8_t>(random()));
    return file;
  };
  EXPECT_EQ(typesize_of(with_header("<f8")), 8);
  EXPECT_EQ(typesize_of(with_header("<i2")), 2);
  EXPECT_EQ(typesize_of(with_header("|u1")), 1);
  EXPECT_EQ(typesize_of(with_header("|V300")), 1) << "more than the field in a chunk header can hold";
}

TEST(FrameChoice, TypesizeOfNumbersAmongZeros) {
  // A few numbers in 64 MB: the samples have to find them.
  std::vector<std::uint8_t> bytes(64'000'000);
  const auto walk =
      values<double>(80'000, [](std::size_t i) { return 20.0 + std::sin(static_cast<double>(i) * 0.001); });
  std::copy(walk.begin(), walk.end(), bytes.begin() + 50'000'008);
  EXPECT_EQ(typesize_of(bytes), 8);
}

TEST(FrameChoice, TypesizeOfPackedRecords) {
  std::mt19937 random(1);
  std::vector<std::uint8_t> bytes;
  for (std::uint32_t i = 0; i < 10'000; ++i) {  // 19 bytes: a counter, a small number, 8 random bytes
    for (int byte = 0; byte < 4; ++byte)
      bytes.push_back(static_cast<std::uint8_t>(i >> (8 * byte)));
    bytes.insert(bytes.end(), {static_cast<std::uint8_t>(random() % 12), 0, 1, 2, 3, 4, 5});
    for (int byte = 0; byte < 8; ++byte)
      bytes.push_back(static_cast<std::uint8_t>(random()));
  }
  EXPECT_EQ(typesize_of(bytes), 19);
  EXPECT_EQ(chosen_for(bytes).typesize, 19);
}

TEST(FrameChoice, FiltersThatSuitTheData) {
  std::mt19937 random(1);
  std::int32_t sum = 0;
  const auto walk =
      values<std::int32_t>(100'000, [&](std::size_t) { return sum += static_cast<int>(random() % 7) - 3; });
  EXPECT_EQ(chosen_for(walk).filters, filters("shuffle+bytedelta"));
  EXPECT_EQ(chosen_for(walk).typesize, 4);
  std::string text;
  while (text.size() < 300'000)
    text += "line " + std::to_string(random() % 10'000) + " of the log: a request took " +
            std::to_string(random() % 100) + " ms\n";
  const EncodeParameters chosen = chosen_for({text.begin(), text.end()});
  EXPECT_EQ(chosen.filters, filters("none"));
  EXPECT_EQ(chosen.typesize, 1);
}

TEST(FrameChoice, OneBitInAnItemIsShuffledByBitsForACodecWithoutEntropyCoder) {
  std::mt19937 random(1);
  const auto flags = values<std::uint32_t>(100'000, [&](std::size_t) { return 0x10203040U + (random() % 2) * 4; });
  EncodeParameters lz4;
  lz4.compcode = codec::kLz4;
  EXPECT_EQ(chosen_for(flags, lz4).filters, filters("bitshuffle"));
}

TEST(FrameChoice, LongerBlocksIfTheyGain) {
  // Each stretch of 256 KiB occurs again after as many bytes.
  std::mt19937 random(1);
  std::vector<std::uint8_t> once(300 << 10);
  for (std::uint8_t& byte : once)
    byte = static_cast<std::uint8_t>(random());
  std::vector<std::uint8_t> repeated;
  while (repeated.size() < (16U << 20))
    codec::append(repeated, once);
  EXPECT_EQ(chosen_for(repeated).blocksize, 1 << 20);
  const auto noise = values<std::uint8_t>(8 << 20, [&](std::size_t) { return random(); });
  EXPECT_EQ(chosen_for(noise).blocksize, 0);
  EncodeParameters given;
  given.blocksize = 4096;
  EXPECT_EQ(chosen_for(repeated, given).blocksize, 4096);
}

TEST(FrameChoice, WithoutDataTheFiltersAreTheUsualOnes) {
  for (const std::size_t size : {0U, 1U, 1'000'000U}) {
    EXPECT_EQ(chosen_for(std::vector<std::uint8_t>(size)).filters, filters("shuffle")) << size;
    EXPECT_EQ(chosen_for(std::vector<std::uint8_t>(size)).typesize, 1) << size;
  }
  EncodeParameters stored;
  stored.clevel = 0;
  EXPECT_EQ(chosen_for(values<double>(20'000, [](std::size_t i) { return i; }), stored).typesize, 1);
}

TEST(FrameChoice, ChunksAreWholeItems) {
  EXPECT_EQ(frame::choose_chunksize(1, 0), 1 << 20);
  EXPECT_EQ(frame::choose_chunksize(8, 0), 1 << 20);
  EXPECT_EQ(frame::choose_chunksize(12, 0), (1 << 20) / 12 * 12);
  EXPECT_EQ(frame::choose_chunksize(8, 1000), 1000);
  EXPECT_EQ(frame::choose_chunksize(8, 1001), 1000);
  EXPECT_EQ(frame::choose_chunksize(3'000'000, 0), 3'000'000);
  EXPECT_EQ(frame::choose_chunksize(300, 7), 300);
}

TEST(FrameChoice, KeepsParametersOfTheCaller) {
  codec::EncodeContext context;
  EncodeParameters parameters = shuffled();
  parameters.typesize = 5;
  parameters.clevel = 7;
  const frame::NewFrame frame =
      frame::choose_frame(context, parameters, 0, frame::samples_of(std::vector<std::uint8_t>(1000, 1)));
  EXPECT_EQ(frame.encode.typesize, 5);
  EXPECT_EQ(frame.encode.clevel, 7);
  EXPECT_EQ(frame.chunksize, (1 << 20) / 5 * 5);
}

}  // namespace
}  // namespace cframefs::test
