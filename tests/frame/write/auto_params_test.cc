// The parameters chosen for new frames: typesize by trial compression, and chunk size.
#include "frame/write/auto_params.h"

#include <cmath>
#include <cstring>
#include <random>
#include <string>

#include <gtest/gtest.h>

namespace cframefs::test {
namespace {

using codec::EncodeParameters;

EncodeParameters shuffled() {
  EncodeParameters parameters;
  parameters.filters[5] = static_cast<std::uint8_t>(codec::FilterId::shuffle);
  return parameters;
}

std::int32_t typesize_of(const std::vector<std::uint8_t>& sample, const EncodeParameters& parameters = shuffled()) {
  codec::EncodeContext context;
  return frame::choose_typesize(context, parameters, sample);
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
  EXPECT_EQ(typesize_of(text), 1);
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
  const frame::NewFrame frame = frame::choose_frame(context, parameters, 0, std::vector<std::uint8_t>(1000, 1));
  EXPECT_EQ(frame.encode.typesize, 5);
  EXPECT_EQ(frame.encode.clevel, 7);
  EXPECT_EQ(frame.chunksize, (1 << 20) / 5 * 5);
}

}  // namespace
}  // namespace cframefs::test
